"""Writes the sets that come along: ``python -m tfm_core.data.own.build_examples``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tfm_core.config.own_pictures import EXAMPLE
from tfm_core.data.own import phrases, place, sets, texts
from tfm_core.data.own.pictures_set import Split, prepare
from tfm_core.data.own.sets import Prepared
from tfm_core.data.own.shapes import shapes
from tfm_core.data.own.texts import inspect_text


def main() -> None:
    """Draw the shapes and write them where sets that come along lie."""
    for name, prepared in examples().items():
        target = place.EXAMPLES / name
        with tempfile.TemporaryDirectory() as folder:
            made = sets.write(prepared, root=Path(folder))
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(made.folder, target, ignore=shutil.ignore_patterns("kept.json"))


def examples() -> dict[str, Prepared]:
    """Return the sets that come along, by their ids."""
    said = {"pairs": phrases.pairs(), "labels": phrases.labelled()}
    reports = {kind: inspect_text(kind, raw) for kind, raw in said.items()}
    return {
        EXAMPLE: prepare(shapes(), "Four shapes", Split()),
        "example-pairs": texts.prepare(reports["pairs"], name="English to German"),
        "example-labels": texts.prepare(reports["labels"], name="What is it about?"),
    }


if __name__ == "__main__":
    main()

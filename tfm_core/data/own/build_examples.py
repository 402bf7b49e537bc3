"""Writes the set of pictures that comes along: ``python -m tfm_core.data.own.build_examples``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tfm_core.config.own_pictures import EXAMPLE
from tfm_core.data.own import place, sets
from tfm_core.data.own.pictures_set import Split, prepare
from tfm_core.data.own.shapes import shapes


def main() -> None:
    """Draw the shapes and write them where sets that come along lie."""
    target = place.EXAMPLES / EXAMPLE
    with tempfile.TemporaryDirectory() as folder:
        made = sets.write(prepare(shapes(), "Four shapes", Split()), root=Path(folder))
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made.folder, target, ignore=shutil.ignore_patterns("kept.json"))


if __name__ == "__main__":
    main()

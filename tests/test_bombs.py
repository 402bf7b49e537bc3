"""Files of others are limited before they are parsed: none takes much memory, or is a traceback.

Small files that cost much, and what reads them, stand in ``tests/bombs.py``.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfm_core
from tests.bombs import GUARDS
from tests.processes import IS_LINUX

ROOT = Path(tfm_core.__file__).parents[1]
SECONDS = 60
"""Of a processor, for one file; the slowest takes three."""
PARSERS = {
    "json.load",
    "json.loads",
    "tomllib.load",
    "tomllib.loads",
    "zipfile.ZipFile",
    "safetensors.safe_open",
    "safetensors.numpy.load",
    "safetensors.torch.load",
    "Image.open",
    "np.load",
    "gzip.open",
    "gzip.decompress",
    "tarfile.open",
    "csv.reader",
    "Tokenizer.from_buffer",
    "Tokenizer.from_file",
    "Tokenizer.from_str",
    "Tokenizer.from_pretrained",
    "torch.load",
    "pickle.load",
    "pickle.loads",
    "ast.literal_eval",
    "ElementTree.parse",
    "pd.read_csv",
    "pd.read_excel",
    "pd.read_parquet",
    "safetensors.numpy.load_file",
    "safetensors.torch.load_file",
}
ALLOWED = {
    "tfm_core/reading.py": "limits what it parses",
    "tfm_core/export/archive.py": "limits what it parses; a bomb reads it",
    "tfm_core/data/opened_folder.py": "limits what it parses; bombs read it",
    "tfm_core/data/user_picture.py": "limits what it parses; bombs read it",
    "tfm_core/data/user_data/pictures_arrays.py": "limits what it parses; bombs read it",
    "tfm_core/data/user_data/pictures.py": "checks the header before; bombs read it",
    "tfm_core/data/user_data/records.py": "cells of a text that is in memory; bombs read it",
    "tfm_core/export/weights_in.py": "checks the header before; bombs read it",
    "tfm_core/data/download.py": "a file whose digest is known",
    "tfm_core/data/image_data.py": "a file whose digest is known, or that comes with the app",
    "tfm_core/choices/presets.py": "comes with the app",
    "tfm_core/trace/functions.py": "comes with the app",
    "tfm_core/facts/architectures.py": "comes with the app",
    "tfm_core/inspect/notebook.py": "comes with the app",
    "tfm_core/studies/grokking.py": "comes with the app",
    "tfm_core/studies/superposition.py": "comes with the app",
    "tfm_core/data/build.py": "makes what comes with the app",
    "tfm_core/recorded/build.py": "makes what comes with the app",
    "tfm_core/inspect/speed/measure.py": "what its parent says",
    "tfm_core/inspect/speed/report.py": "what its child says",
    "tfm_core/training/gpu_helper.py": "what its child says",
    "tfm_core/runs/process/worker.py": "what its parent says",
    "tfm_core/studies/practice.py": "weights that it has just written",
    "tfm_core/data/user_data/tokens.py": "what tokenizers has just written",
    "tfm_core/export/bundle.py": "writes a zip, and a configuration as plain values",
    "tfm_core/export/hugging_face.py": "writes a zip",
    "tfm_core/export/tensorboard.py": "writes a zip",
    "tfm_core/lessons/scorm.py": "writes a zip",
    "tfm_core/runs/thinned.py": "its own constants",
    "tfm_core/sweeps/plan.py": "a plan as plain values",
    "pages/train/preset_list.py": "what the page has just written",
    "pages/server/static_files.py": "a script that comes with Streamlit",
}
NOT_READ_BY_A_BOMB = {
    "tfm_core.pretrained.base": "weights that the app wrote, by their digest",
    "pages.app.navigation.terms": "comes with the app",
    "pages.learn.challenges.challenge": "comes with the app",
}


@pytest.mark.wide
def test_no_small_file_takes_much_memory_or_ends_in_a_traceback(tmp_path: Path) -> None:
    if not IS_LINUX:
        pytest.skip("the memory of a process is limited on Linux alone")
    command = [sys.executable, "-m", "tests.bombs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-200:]
    *lines, modules = map(json.loads, done.stdout.splitlines())
    assert len(lines) > 200
    assert [line for line in lines if line[1] not in ("read", "refused")] == []
    assert [line for line in lines if line[2] > SECONDS] == []
    guarded = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tfm_core.reading"
        if {name.name for name in node.names} & set(GUARDS)
    }
    assert guarded - set(modules) == set(NOT_READ_BY_A_BOMB), "a reader that no bomb reads"


@pytest.mark.quick
def test_every_file_is_parsed_behind_a_limit() -> None:
    found = {str(path.relative_to(ROOT)) for path, tree in sources() if used(tree) & PARSERS}
    assert found == set(ALLOWED), "use tfm_core.reading, and add a bomb to tests/bombs.py"


def used(tree: ast.Module) -> set[str]:
    """Return what a module calls, by its last two names, and what it imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(".".join(ast.unparse(node.func).split(".")[-2:]))
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def sources() -> Iterator[tuple[Path, ast.Module]]:
    """Yield every module of the app, parsed."""
    for folder in ("tfm_core", "pages"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))

"""Processes in which some packages are not installed, as far as they can tell."""

import os
from collections.abc import Iterable
from pathlib import Path

_HIDE = """
import importlib.machinery

hidden = set({names!r})
find = importlib.machinery.PathFinder.find_spec.__func__


def find_spec(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find(cls, name, path, target)


importlib.machinery.PathFinder.find_spec = classmethod(find_spec)
"""


def without(names: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the environment of a Python that finds no modules of these names.

    folder: where a file is written that it reads at its start.
    """
    (folder / "sitecustomize.py").write_text(_HIDE.format(names=sorted(names)), encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(folder)}

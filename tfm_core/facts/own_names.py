"""The names of a model's parts as its own family says them, where the engine has one name for all.

The engine calls every text model with a source and a target, and keeps its tables under those
names. A model that reads one text has neither: a GPT has a token embedding, and a table is not said
twice. Tables of parameters and the generated file say the family's names; checkpoints keep the
engine's.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.anatomy import anatomy
from tfm_core.config import ModelConfig
from tfm_core.config.shape import Shape

Names = Mapping[str, str | None]


def own_names(config: ModelConfig, shape: Shape) -> Names:
    """Return path of a module in the engine -> its name in the family, or None for a second name.

    Paths that are not here, and what lies below a path, keep their names.
    """
    return anatomy(config, shape).own_names


def own_name(path: str, names: Names) -> str | None:
    """Return a module's or a parameter's path with the family's name; None for a second name."""
    for old, new in names.items():
        if path == old or path.startswith(f"{old}."):
            return None if new is None else new + path.removeprefix(old)
    return path

"""What ``print(model)`` says: the modules of the generated file, as PyTorch lists them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tfm_core.config import ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.inspect.source.file import source_code


@lru_cache(maxsize=32)
def printed(config: ModelConfig, shape: Shape) -> str:
    """Return the printed structure of a model; none of its weights is made."""
    from tfm_core.models.build import init_on_meta

    names: dict[str, Any] = {"__name__": "model"}
    exec(source_code(config, shape), names)
    with init_on_meta():
        return str(names["Model"]())

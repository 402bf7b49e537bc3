"""The names of a model's parts as its own family says them, where the engine has one name for all.

The engine calls every text model with a source and a target, and keeps its tables under those
names. A model that reads one text has neither: a GPT has a token embedding, and a table is not said
twice. Tables of parameters and the generated file say the family's names; checkpoints keep the
engine's.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.config import CaptionerConfig, DecoderOnlyConfig, EncoderOnlyConfig, ModelConfig
from tfm_core.config.shape import Shape, TextShape

Names = Mapping[str, str | None]


def own_names(config: ModelConfig, shape: Shape) -> Names:
    """Return path of a module in the engine -> its name in the family, or None for a second name.

    Paths that are not here, and what lies below a path, keep their names.
    """
    if isinstance(config, CaptionerConfig):
        return {"tgt_embedding": "word_embedding", "tgt_positions": "word_positions"}
    if isinstance(config, EncoderOnlyConfig):
        names: dict[str, str | None] = {
            "src_embedding": "token_embedding",
            "src_positions": "positions",
        }
        assert isinstance(shape, TextShape)
        names |= {"output.labels": "output"} if shape.is_label else {}
        return names | ({"output.hidden": "hidden"} if shape.n_hidden else {})
    if isinstance(config, DecoderOnlyConfig):
        assert isinstance(shape, TextShape)
        if shape.one_vocabulary:
            return {"src_embedding": "token_embedding", "tgt_embedding": None}
        return {"src_embedding": "source_embedding", "tgt_embedding": "target_embedding"}
    return {}


def own_name(path: str, names: Names) -> str | None:
    """Return a module's or a parameter's path with the family's name; None for a second name."""
    for old, new in names.items():
        if path == old or path.startswith(f"{old}."):
            return None if new is None else new + path.removeprefix(old)
    return path

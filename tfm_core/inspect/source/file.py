"""One standalone PyTorch file for exactly one configuration: readable, and it runs.

It needs torch alone, has no branch that the configuration does not take, names its modules as its
family does, and can read the weights of a run. With what it carries of the run's data it answers
pictures and sentences as they are.

The templates beside this module read like the file: one for each class of the anatomy's parts, by
its name or the part's kind, and one for the model of each family. A new part needs one more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from math import isqrt
from typing import Any, Literal, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined

from tfm_core.anatomy import Attention, Part, anatomy
from tfm_core.config import FAMILIES, ModelConfig
from tfm_core.config.shape import CLS_ID, Shape, TextShape
from tfm_core.data.vocabulary import BOS, EOS, MASK, SPECIALS, UNK
from tfm_core.inspect.source.carried import Carried
from tfm_core.inspect.source.texts import Spelling
from tfm_core.variants import units
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS
from tfm_core.variants.forms import CAUSALITIES, PROJECTIONS, RESIDUALS, SCALES
from tfm_core.variants.norms import NORMS
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.stems import STEMS

AttentionForm = Literal["written", "fused"]
"""How attention is written: its softmax in plain lines, which can show its weights, or one call of
PyTorch's fused kernel, which never has them. A recurrent model's is always written out."""
FORMS: tuple[AttentionForm, ...] = get_args(AttentionForm)
MAX_COLUMNS = 96


def _listed(name: str, values: Iterable[str], brackets: str = "[]") -> str:
    """Return an assignment of many values, in lines that are not too long."""
    lines, line = [f"{name} = {brackets[0]}"], "   "
    for value in values:
        word = f" {json.dumps(value, ensure_ascii=False)},"
        if len(line) + len(word) > MAX_COLUMNS:
            lines, line = [*lines, line], "   "
        line += word
    return "\n".join([*lines, line, brackets[1], ""])


_TEMPLATES = Environment(
    loader=PackageLoader("tfm_core.inspect.source"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.globals |= {
    "MASK": MASK,
    "unknown": SPECIALS[UNK],
    "n_specials": len(SPECIALS),
    "units": units,
    "listed": _listed,
}
_NAMES = frozenset(_TEMPLATES.list_templates())
_VARIANTS = {
    "activation": ACTIVATIONS,
    "attention": ALIGNMENT_SCORES,
    "causality": CAUSALITIES,
    "cell": CELLS,
    "norm": NORMS,
    "pooling": POOLINGS,
    "position": POSITIONS,
    "projections": PROJECTIONS,
    "residual": RESIDUALS,
    "scale": SCALES,
    "stem": STEMS,
    "text_position": POSITIONS,
}
"""The settings that templates read as the records that they name."""
_MODULES = ("argparse", "json", "math", "re", "unicodedata")
_CONSTANTS = (
    "D_MODEL", "HALF", "N_HEADS", "D_HEAD", "D_FF", "DROPOUT", "N_LAYERS", "N_ENCODER_LAYERS",
    "N_DECODER_LAYERS", "IMAGE", "CHANNELS", "PATCH", "SIDE", "N_TOKENS", "N_CLASSES", "SRC_WORDS",
    "SOURCE_WORDS", "TGT_WORDS", "TARGET_WORDS", "N_WORDS", "N_ANSWERS", "PAD", "N_LABELS",
    "N_HIDDEN", "CLS", "MAX_LEN", "WINDOW", "N_SEGMENTS",
)  # fmt: skip
"""The settings and sizes that a file names in capitals, in order: it has those that it reads."""


def source_code(
    config: ModelConfig,
    shape: Shape,
    *,
    form: AttentionForm = "written",
    data: Carried | None = None,
) -> str:
    """Return the whole file.

    data: what it carries of a run's data; without it the file has no texts and no pictures to
    answer.
    """
    facts = _facts(config, shape, form, data)
    body = _TEMPLATES.get_template(f"models/{config.family}.py.j2").render(facts)
    body = re.sub(r"\n{3,}", "\n\n\n", body).strip("\n")
    return f"{_head(config, shape, facts, body)}\n\n{body}\n"


def _head(config: ModelConfig, shape: Shape, facts: Mapping[str, Any], body: str) -> str:
    """Return the docstring, and the imports and constants that the body names."""
    words, owners = set(re.findall(r"\w+", body)), set(re.findall(r"\b(\w+)\.", body))
    sizes = {**config.model_dump(), **asdict(shape), **anatomy(config, shape).sizes}
    n_patches, tgt_words = sizes.get("patches", 0), sizes.get("tgt_words")
    values = {name.upper(): size for name, size in sizes.items()} | {
        "HALF": sizes.get("d_reader"),
        "IMAGE": sizes.get("image_size"),
        "PATCH": sizes.get("patch_size"),
        "SIDE": isqrt(n_patches),
        "N_TOKENS": n_patches + sizes.get("has_cls", 0),
        "N_WORDS": sizes.get("src_words", tgt_words),
        "N_ANSWERS": tgt_words,
        "SOURCE_WORDS": sizes.get("src_words"),
        "TARGET_WORDS": tgt_words,
        "PAD": sizes.get("pad_id"),
        "CLS": CLS_ID,
    }
    special = {"BOS": BOS, "EOS": EOS, "UNK": UNK}
    head = _TEMPLATES.get_template("head.py.j2").render(
        facts,
        words=words,
        modules=[name for name in _MODULES if name in owners],
        uses_functional="F" in owners,
        constants={name: values[name] for name in _CONSTANTS if name in words},
        special={name: number for name, number in special.items() if name in words},
    )
    return head.rstrip("\n") + "\n"


def _facts(
    config: ModelConfig, shape: Shape, form: AttentionForm, data: Carried | None
) -> dict[str, Any]:
    """Return what the templates read."""
    model = anatomy(config, shape)
    variants: dict[str, Any] = {
        name: known[getattr(config, name)]
        for name, known in _VARIANTS.items()
        if hasattr(config, name)
    }
    stacks = {part.path: part for part in model.folded if part.layer == "Stack"}
    attentions = [part for part, _n in model.counted if isinstance(part, Attention)]
    has_memory = any(part.is_cross for part in attentions)
    has_mask = any(part.mask for part in attentions)
    default = "=None" if has_memory else ""
    inside = variants["position"].inside
    kinds = [variants[name] for name in ("position", "text_position") if name in variants]
    *_, last = (part for part, _n in model.counted if part.layer == "Linear")
    vocabularies = _vocabularies(shape, data) if data else {}
    facts = {
        **variants,
        "config": config,
        "shape": shape,
        "form": form,
        "data": data,
        "family": FAMILIES[config.family],
        "own_names": model.own_names,
        "stacks": stacks,
        "has_memory": has_memory,
        "has_mask": has_mask,
        "is_always_masked": all(part.mask for part in attentions),
        "has_window": any("window" in part.mask for part in attentions),
        "mask_argument": [f"mask{default}"] if has_mask else [],
        "memory_arguments": ["memory=None", "memory_mask=None"] if has_memory else [],
        "relative_argument": [f"{inside.argument}{default}"] if inside else [],
        "turn": inside.turn if inside else None,
        "added_to_scores": inside.argument if inside and not inside.turn else None,
        "functions": dict.fromkeys(f for kind in kinds for f in kind.functions),
        "scales_embedding": getattr(shape, "scale_embedding", True) or not stacks,
        "no_output_bias": "" if len(last.parameters) > 1 else ", bias=False",
        "is_tied": any(one.tied_to for one in last.parameters),
        "first_id": "0" if getattr(shape, "pad_id", None) is None else "PAD + 1",
        "text_functions": text_functions(data.spelling) if data and data.spelling else "",
        "vocabularies": vocabularies,
        "source": next(iter(vocabularies), None),
        "target": next(reversed(vocabularies), None),
    }
    stacks_first = sorted(model.folded, key=lambda part: part.layer != "Stack")
    return facts | {"classes": _classes(stacks_first, facts)}


def _classes(parts: Iterable[Part], facts: Mapping[str, Any]) -> list[str]:
    """Return the source of each class of some parts once, inner ones first."""
    found: list[str] = []
    for part in parts:
        found += _classes(part.children, facts)
        names = (f"classes/{name}.py.j2" for name in (part.layer, part.kind))
        name = next((name for name in names if name in _NAMES), None)
        if name is not None:
            found.append(_TEMPLATES.get_template(name).render(facts, part=part))
    return list(dict.fromkeys(found))


def text_functions(spelling: Spelling) -> str:
    """Return the source of ``cut`` and ``joined``, with the lists that they look up."""
    return _TEMPLATES.get_template("texts.py.j2").render(spelling=spelling)


def _vocabularies(shape: Shape, data: Carried) -> dict[str, tuple[str, ...]]:
    """Return the lists of tokens that a file carries, by their names in it."""
    if not data.tgt:
        return {}
    if isinstance(shape, TextShape) and shape.is_label:
        return {"WORDS": data.src, "LABELS": data.tgt[-shape.n_labels :]}
    if not data.src or data.src == data.tgt:
        return {"WORDS": data.tgt}
    return {"SOURCE": data.src, "TARGET": data.tgt}


@lru_cache(maxsize=32)
def printed(config: ModelConfig, shape: Shape) -> str:
    """Return the printed structure of a model; none of its weights is made."""
    from tfm_core.models.build import init_on_meta

    names: dict[str, Any] = {"__name__": "model"}
    exec(source_code(config, shape), names)
    with init_on_meta():
        return str(names["Model"]())

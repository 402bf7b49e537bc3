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

from tfm_core.anatomy import Anatomy, Attention, Part, anatomy
from tfm_core.anatomy.names import Naming, Scheme, naming_of, parts_in_notebook
from tfm_core.choices.config import FAMILIES, ModelConfig
from tfm_core.choices.config.shape import CLS_ID, Shape, TextShape
from tfm_core.choices.variants import tasks
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import CAUSALITIES, PROJECTIONS, RESIDUALS, SCALES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS, Function, Position
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.choices.variants.stems import POOLINGS, STEMS
from tfm_core.data.text.task import Spelling
from tfm_core.data.vocabulary import BOS, EOS, MASK, SPECIALS, UNK
from tfm_core.facts.parameter_table import own_name
from tfm_core.trace.source.carried import Carried

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
    loader=PackageLoader("tfm_core.trace.source"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.globals |= {
    "MASK": MASK,
    "unknown": SPECIALS[UNK],
    "n_specials": len(SPECIALS),
    "units": tasks,
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
    "sink": SINKS,
    "stem": STEMS,
    "text_position": POSITIONS,
}
"""The settings that templates read as the records that they name."""
_MODULES = ("argparse", "json", "math", "re", "unicodedata")
_CONSTANTS = (
    "D_MODEL",
    "HALF",
    "N_HEADS",
    "N_KV_HEADS",
    "D_HEAD",
    "D_Q",
    "D_KV",
    "D_FF",
    "N_EXPERTS",
    "TOP_K",
    "DROPOUT",
    "N_LAYERS",
    "N_ENCODER_LAYERS",
    "N_DECODER_LAYERS",
    "IMAGE",
    "CHANNELS",
    "PATCH",
    "SIDE",
    "N_TOKENS",
    "N_CLASSES",
    "SRC_WORDS",
    "SOURCE_WORDS",
    "TGT_WORDS",
    "TARGET_WORDS",
    "N_WORDS",
    "N_ANSWERS",
    "PAD",
    "N_LABELS",
    "N_HIDDEN",
    "CLS",
    "MAX_LEN",
    "WINDOW",
    "FULL_EVERY",
    "N_SEGMENTS",
)
"""The settings and sizes that a file names in capitals, in order: it has those that it reads."""


def source_code(
    config: ModelConfig,
    shape: Shape,
    *,
    form: AttentionForm = "written",
    data: Carried | None = None,
    scheme: Scheme = "ours",
) -> str:
    """Return the whole file.

    scheme: whose names its modules have; those of libraries have no file of this kind and take
    ours. data: what it carries of a run's data; without it the file has no texts and no pictures to
    answer.
    """
    naming = naming_of(config, scheme if scheme == "notebook" else "ours")
    facts = _facts(config, shape, form, data, naming)
    body = _TEMPLATES.get_template(f"models/{config.family}.py.j2").render(facts)
    body = re.sub(r"\n{3,}", "\n\n\n", body).strip("\n")
    if naming.scheme == "notebook":
        body = _in_notebook(body, facts)
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


def _in_notebook(body: str, facts: Mapping[str, Any]) -> str:
    """Return the model of a file with the notebook's names around the blocks."""
    if facts["stacks"]:  # a class each, as the notebooks have
        body = re.sub(
            r"self\.(encoder|decoder) = Stack\((\w+)(, has_cross=True)?\)",
            lambda found: f"self.{found[1]} = {found[1].capitalize()}({found[2]})",
            body,
        )
    for old, new in facts["attributes"].items():
        body = re.sub(rf"\bself\.{old}\b", f"self.{new}", body)
    return body.replace(".table.weight  # tied", ".weight  # tied")


_BLOCK = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")


def _notebook_names(model: Anatomy, naming: Naming) -> dict[str, Any]:
    """Return the notebook's names for the templates.

    notebook_names: a pattern of a module's path in a checkpoint -> its path in the file; patterns
    leave the number of a block open, and a fused projection keeps its last name. block_names: what
    a block with ("cross") and without ("self") cross-attention calls its parts. attributes: of what
    is around the blocks, our name -> theirs.
    """
    if naming.scheme != "notebook":
        return {"notebook_names": {}, "block_names": {"self": {}, "cross": {}}, "attributes": {}}
    weights: dict[str, str] = {}
    attributes: dict[str, str] = {}
    for path, (ours, theirs) in _paths_in_notebook(model, naming).items():
        block = _BLOCK.match(path)
        old, new = re.escape(path), theirs
        if block is not None:
            start = block.end()
            old = rf"{block[1]}\.layers\.(\d+)\.{re.escape(path[start:])}"
            new = rf"{block[1]}.layers.\1.{theirs[start:]}"
        elif ours:
            last = [name.removesuffix(".table").rpartition(".")[2] for name in (ours, theirs)]
            attributes[last[0]] = last[1]
        weights.setdefault(old, new)
    blocks = _block_names(model, naming)
    return {"notebook_names": weights, "block_names": blocks, "attributes": attributes}


def _paths_in_notebook(model: Anatomy, naming: Naming) -> dict[str, tuple[str, str]]:
    """Return path of a module -> its name in its family, "" for a second name, and the file's."""
    here = {part.path or "cls": own_name(part.path, model.own_names) for part in model.modules}
    theirs = {path: naming.of(path, ours or path) for path, ours in here.items()}
    firsts = [names[0] for path, names in theirs.items() if names and here[path] is not None]
    paths: dict[str, tuple[str, str]] = {}
    for path, ours in here.items():
        ours = ours or ("cls" if path == "cls" else "")
        names = theirs[path] or (ours,)
        if not theirs[path] and _BLOCK.match(path):
            outer, dot, last = ours.rpartition(".")
            names = (f"{parts_in_notebook(outer)}{dot}{last}",)
        if len(names) > 1:
            name = f"{names[0].rpartition('.')[0]}.in_projection"
        elif not ours:  # a second name of a table
            name = paths["src_embedding.table"][1]
        else:  # two of one name keep ours
            name = ours if firsts.count(names[0]) > 1 else names[0]
        paths[path] = ours, name
    return paths


def _block_names(model: Anatomy, naming: Naming) -> dict[str, dict[str, str]]:
    names: dict[str, dict[str, str]] = {"self": {}, "cross": {}}
    for block in model.blocks:
        for part in block.children:
            if part.layer:
                ours = part.path.removeprefix(f"{block.path}.")
                theirs = (naming.of(part.path, part.path) or (part.path,))[0]
                own = theirs.removeprefix(f"{block.path}.").partition(".")[0]
                names["cross" if len(block.inputs) > 1 else "self"][ours] = own
    return names


def _facts(
    config: ModelConfig, shape: Shape, form: AttentionForm, data: Carried | None, naming: Naming
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
        "is_notebook": naming.scheme == "notebook",
        "has_add_norm": naming.scheme == "notebook" and naming.norms == "sum",
        **_notebook_names(model, naming),
        "stacks": stacks,
        "has_memory": has_memory,
        "blocks_look": any(len(block.inputs) > 1 for block in model.blocks),
        "has_mask": has_mask,
        "is_always_masked": all(part.mask for part in attentions),
        "has_window": any("window" in part.mask for part in attentions),
        "is_window_by_layer": getattr(config, "window", 0) and getattr(config, "full_every", 0),
        "mask_argument": [f"mask{default}"] if has_mask else [],
        "memory_arguments": ["memory=None", "memory_mask=None"] if has_memory else [],
        "relative_argument": [f"{inside.argument}{default}"] if inside else [],
        "turn": inside.turn if inside else None,
        "added_to_scores": inside.argument if inside and not inside.turn else None,
        "functions": dict.fromkeys(f for kind in kinds for f in _functions(kind, config)),
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


def _functions(kind: Position, config: ModelConfig) -> tuple[Function, ...]:
    return kind.functions if kind.functions_of is None else kind.functions_of(config)


def _classes(parts: Iterable[Part], facts: Mapping[str, Any]) -> list[str]:
    """Return the source of each class of some parts once, inner ones first."""
    found: list[str] = []
    for part in parts:
        found += _classes(part.children, facts)
        kinds = [f"{name}.py.j2" for name in (part.layer, part.kind)]
        rooms = ("classes/notebook/", "classes/") if facts["is_notebook"] else ("classes/",)
        names = (f"{room}{kind}" for kind in kinds for room in rooms)
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
def printed(config: ModelConfig, shape: Shape, scheme: Scheme = "ours", *, path: str = "") -> str:
    """Return the printed structure of a model, or of a part of it; none of its weights is made.

    scheme: as in ``source_code``. path: the attribute of the model that is the part.
    """
    from tfm_core.models.build import init_on_meta

    names: dict[str, Any] = {"__name__": "model"}
    exec(source_code(config, shape, scheme=scheme), names)
    with init_on_meta():
        return str(names["Model"]().get_submodule(path))

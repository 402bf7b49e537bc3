"""From a folder to a model of the engine, all of whose weights are the folder's.

Every tensor is accounted for: it is a parameter here, belongs to a head that is not opened, or is
refused; and all names and shapes are checked before the first number is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from tfm_core.anatomy.hugging_face import COLUMNS, pattern_of
from tfm_core.choices.config import ConfigError, ModelConfig
from tfm_core.choices.config.pretrained_tasks import WITHOUT_HEAD
from tfm_core.choices.config.shape import Shape
from tfm_core.data.opened_folder import DTYPES, MAX_BYTES, Folder, Unopenable
from tfm_core.models.build import Model, build_model, init_on_meta
from tfm_core.pretrained.adapter import open_any
from tfm_core.pretrained.families import PRETRAINED, Plan, PretrainedFamily
from tfm_core.pretrained.settings import Settings
from tfm_core.sentences import N_, Paragraph


@dataclass(frozen=True, slots=True, eq=False)
class CheckedFolder:
    """A folder that fits the engine, before its weights are loaded.

    sources: name of a parameter here -> the names of its tensors there. left_out: tensors of heads
    that are not opened. shapes: of the parameters here, by name. head: our name of a head's tensor
    -> its name there.
    """

    folder: Folder
    family: PretrainedFamily
    plan: Plan
    sources: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...]
    shapes: Mapping[str, torch.Size]
    head: Mapping[str, str]

    @property
    def n_parameters(self) -> int:
        """How many numbers the model has."""
        return sum(shape.numel() for shape in self.shapes.values())

    @property
    def config(self) -> ModelConfig:
        """The settings of the model."""
        return self.plan.model

    @property
    def shape(self) -> Shape:
        """What the model knows of its data."""
        return self.plan.shape

    @property
    def n_bytes(self) -> int:
        """Bytes of memory that the loaded model takes: all numbers are fp32."""
        return 4 * self.n_parameters

    @property
    def heads_left_out(self) -> str:
        """What heads that are not opened are called there."""
        depth = {"cls": 2}  # in which BERT has two heads
        places = [name.split(".") for name in self.left_out]
        return ", ".join(sorted({".".join(names[: depth.get(names[0], 1)]) for names in places}))

    @property
    def notes(self) -> tuple[str, ...]:
        """What differs from the folder, in sentences."""
        if not self.left_out:
            return self.plan.notes
        return (*self.plan.notes, N_(WITHOUT_HEAD, parts=self.heads_left_out))


def check_folder(path: Path, *, most: int = MAX_BYTES) -> CheckedFolder:
    """Return what a folder holds, with every name and shape checked and no weight loaded.

    most: bytes of all weights. Raises Unopenable.
    """
    folder = open_any(path, most=most)
    family = _family(folder)
    stored = {_bare(name, family): name for name in folder.tensors}
    if len(stored) != len(folder.tensors):
        twice = next(name for name in folder.tensors if stored[_bare(name, family)] != name)
        raise Unopenable("{name} appears twice.", name=twice)
    try:
        plan = family.plan(Settings(folder.config), stored.keys())
        with init_on_meta():
            model = build_model(plan.model, plan.shape)
    except ConfigError as error:
        raise Unopenable("This folder cannot be opened: {why}", why=error.sentence) from None
    parameters = dict(model.named_parameters())
    wanted = {name: _sources(name, family, plan, stored) for name in parameters}
    absent = [name for names in wanted.values() for name in names if name not in stored]
    if absent == ["lm_head.weight"]:
        raise Unopenable(Paragraph("pretrained/no-words", name=absent[0]))
    if family.name == "t5" and not any(name.startswith("decoder.") for name in stored):
        raise Unopenable(Paragraph("pretrained/encoder-alone"))
    if absent:
        raise _some(_ABSENT, absent)
    head = _head(folder, plan, stored)
    used = {name for names in wanted.values() for name in names}
    if head:
        used |= {part.name for part in plan.head.values()}
    tied = {"lm_head.weight"} if "lm_head.weight" not in used else set()
    others = [
        name
        for name in stored
        if name not in used | tied and not re.fullmatch(family.buffers, name)
    ]
    left_out = tuple(name for name in others if name.startswith(family.heads))
    unknown = [name for name in others if name not in left_out]
    if unknown:
        raise _some(_UNKNOWN, unknown)
    if lost := {_bare(name, family) for name in folder.changes} - used:
        raise _some(_UNKNOWN, sorted(lost))
    sources = {here: tuple(stored[name] for name in names) for here, names in wanted.items()}
    for here, names in sources.items():
        _check(here, names, folder, plan, parameters[here])
    shapes = {name: parameter.shape for name, parameter in parameters.items()}
    return CheckedFolder(folder, family, plan, sources, left_out, shapes, head)


def _head(folder: Folder, plan: Plan, stored: Mapping[str, str]) -> dict[str, str]:
    """Return the names of a head's tensors; none where one is of another head."""
    for part in plan.head.values():
        found = folder.tensors.get(stored.get(part.name, ""))
        if found is None or found.shape != part.shape or found.dtype not in DTYPES:
            return {}
    return {ours: stored[part.name] for ours, part in plan.head.items()}


def parameters_of(checked: CheckedFolder) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters by name, in fp32, each read when its turn comes. Raises Unopenable."""
    for name, sources in checked.sources.items():
        parts = [checked.folder.read(source) for source in sources]
        yield name, checked.plan.adapt(name, parts).contiguous()


def load_model(checked: CheckedFolder) -> Model:
    """Return the model, in fp32 and evaluation mode. Raises Unopenable, with nothing loaded."""
    with init_on_meta():
        model = build_model(checked.config, checked.shape)
    loaded = {name: nn.Parameter(values) for name, values in parameters_of(checked)}
    by_meta = {id(parameter): loaded[name] for name, parameter in model.named_parameters()}
    everywhere = model.named_parameters(remove_duplicate=False)
    model.load_state_dict(
        {name: by_meta[id(parameter)] for name, parameter in everywhere}, assign=True
    )
    return model.eval()


def _family(folder: Folder) -> PretrainedFamily:
    if folder.config.get("auto_map"):
        raise Unopenable("This model needs code from its folder, which is never run.")
    kind = folder.config.get("model_type")
    if not isinstance(kind, str) or kind not in PRETRAINED:
        raise Unopenable(
            "The architecture {found!r} is not supported; supported: {known}. In Python, "
            "tfm_core.look(model, ids) shows the attention of any model.",
            found=str(kind)[:40],
            known=", ".join(PRETRAINED),
        )
    return PRETRAINED[kind]


def _bare(name: str, family: PretrainedFamily) -> str:
    """Return a name without what only some files of the family put in front."""
    return name.removeprefix(family.base or "")


def _sources(
    name: str, family: PretrainedFamily, plan: Plan, stored: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the tensors there of a parameter here, by their bare names."""
    if name in plan.sources:
        return plan.sources[name]
    column = COLUMNS[family.name]
    module, _dot, leaf = name.rpartition(".")
    for path, ending in ((module, f".{leaf}"), (module, ".weight"), (module, ""), (name, "")):
        pattern, layer = pattern_of(path)
        theirs = tuple(
            _bare(module.replace("{i}", layer), family) + ending
            for module in column.get(pattern, ())
        )
        if theirs and any(name in stored for name in theirs):
            return theirs
    pattern, layer = pattern_of(module or name)
    return tuple(_bare(path.replace("{i}", layer), family) + f".{leaf}" for path in column[pattern])


def _check(
    here: str, names: tuple[str, ...], folder: Folder, plan: Plan, parameter: Tensor
) -> None:
    """Raise Unopenable where tensors have other types or shapes than a parameter here needs."""
    for name in names:
        if folder.tensors[name].dtype not in DTYPES:
            raise Unopenable(
                "{name} has the type {dtype}; supported: {known}.",
                name=name,
                dtype=folder.tensors[name].dtype,
                known=", ".join(DTYPES),
            )
    parts = [torch.empty(folder.tensors[name].shape, device="meta") for name in names]
    try:
        fits = plan.adapt(here, parts).shape == parameter.shape
    except (RuntimeError, IndexError):
        fits = False
    if not fits:
        shape = " x ".join(map(str, folder.tensors[names[0]].shape))
        raise Unopenable(
            "{name} has the shape {shape}, which does not fit config.json.",
            name=names[0],
            shape=shape or "1",
        )


_ABSENT = (
    N_("{name} is missing."),
    N_("{n} tensors are missing, such as {name}."),
)
_UNKNOWN = (
    N_("{name} is not part of the model in config.json."),
    N_("{n} tensors are not part of the model in config.json, such as {name}."),
)


def _some(forms: tuple[str, str], names: list[str]) -> Unopenable:
    """Return the error about one tensor or several. forms: its sentence for one, and for more."""
    if len(names) == 1:
        return Unopenable(forms[0], name=names[0])
    return Unopenable(forms[1], name=names[0], n=len(names))

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
from tfm_core.config import ConfigError, ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.models.build import Model, build_model, init_on_meta
from tfm_core.pretrained.families import PRETRAINED, Plan, PretrainedFamily
from tfm_core.pretrained.folder import DTYPES, MAX_BYTES, Folder, Unopenable, open_folder
from tfm_core.pretrained.settings import Settings
from tfm_core.sentences import N_, Paragraph


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A folder that fits the engine, before its weights are loaded.

    sources: name of a parameter here -> the names of its tensors there. left_out: tensors of heads
    that are not opened. shapes: of the parameters here, by name.
    """

    folder: Folder
    family: PretrainedFamily
    plan: Plan
    sources: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...]
    shapes: Mapping[str, torch.Size]

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
    def notes(self) -> tuple[str, ...]:
        """What differs from the folder, in sentences."""
        if not self.left_out:
            return self.plan.notes
        parts = ", ".join(sorted({name.partition(".")[0] for name in self.left_out}))
        return (*self.plan.notes, N_("Not opened: {parts}.", parts=parts))


def check_folder(path: Path, *, most: int = MAX_BYTES) -> Checked:
    """Return what a folder holds, with every name and shape checked and no weight loaded.

    most: bytes of all weights. Raises Unopenable.
    """
    folder = open_folder(path, most=most)
    family = _family(folder)
    stored = {_bare(name, family): name for name in folder.tensors}
    if len(stored) != len(folder.tensors):
        twice = next(name for name in folder.tensors if stored[_bare(name, family)] != name)
        raise Unopenable("{name} is there twice.", name=twice)
    try:
        plan = family.plan(Settings(folder.config), stored.keys())
        with init_on_meta():
            model = build_model(plan.model, plan.shape)
    except ConfigError as error:
        raise Unopenable("This folder cannot be opened: {why}", why=error.sentence) from None
    parameters = dict(model.named_parameters())
    wanted = {name: _sources(name, family, plan, stored) for name in parameters}
    absent = [
        name for names in wanted.values() for name in names if name not in stored
    ]  # fmt: skip
    if absent:
        raise _some(_ABSENT, absent)
    used = {name for names in wanted.values() for name in names}
    tied = {"lm_head.weight"} if "lm_head.weight" not in used else set()
    others = [
        name
        for name in stored
        if name not in used | tied and not re.fullmatch(family.buffers or r"(?!)", name)
    ]
    left_out = tuple(name for name in others if name.startswith(family.heads))
    unknown = [name for name in others if name not in left_out]
    if unknown:
        raise _some(_UNKNOWN, unknown)
    sources = {here: tuple(stored[name] for name in names) for here, names in wanted.items()}
    for here, names in sources.items():
        _check(here, names, folder, plan, parameters[here])
    shapes = {name: one.shape for name, one in parameters.items()}
    return Checked(folder, family, plan, sources, left_out, shapes)


def parameters_of(checked: Checked) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters by name, in fp32, each read when its turn comes. Raises Unopenable."""
    for name, shape in checked.shapes.items():
        parts = [checked.folder.read(one) for one in checked.sources[name]]
        yield name, checked.plan.adapt(name, parts).contiguous() if parts else torch.zeros(shape)


def load_model(checked: Checked) -> Model:
    """Return the model, in fp32 and evaluation mode. Raises Unopenable, with nothing loaded."""
    with init_on_meta():
        model = build_model(checked.config, checked.shape)
    loaded = {name: nn.Parameter(values) for name, values in parameters_of(checked)}
    by_meta = {id(one): loaded[name] for name, one in model.named_parameters()}
    everywhere = model.named_parameters(remove_duplicate=False)
    model.load_state_dict({name: by_meta[id(one)] for name, one in everywhere}, assign=True)
    return model.eval()


def _family(folder: Folder) -> PretrainedFamily:
    if folder.config.get("auto_map"):
        raise Unopenable("This model needs code from its folder, which is never run.")
    kind = folder.config.get("model_type")
    if kind == "deit":
        raise Unopenable(Paragraph("pretrained/deit"))
    if not isinstance(kind, str) or kind not in PRETRAINED:
        raise Unopenable(
            "The architecture {found!r} is not supported; supported: {known}.",
            found=str(kind)[:40],
            known=", ".join(PRETRAINED),
        )
    return PRETRAINED[kind]


def _bare(name: str, family: PretrainedFamily) -> str:
    """Return a name without what only some files of the family put in front."""
    return name.removeprefix(family.base) if family.base else name


def _sources(
    name: str, family: PretrainedFamily, plan: Plan, stored: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the tensors there of a parameter here, by their bare names; () for one of zeros."""
    if name in plan.zeros:
        return ()
    if name in plan.sources:
        return plan.sources[name]
    column = COLUMNS[family.column]
    module, _dot, leaf = name.rpartition(".")
    for path, ending in ((module, f".{leaf}"), (module, ".weight"), (module, ""), (name, "")):
        pattern, layer = pattern_of(path)
        theirs = tuple(
            _bare(one.replace("{i}", layer), family) + ending for one in column.get(pattern, ())
        )
        if theirs and any(one in stored for one in theirs):
            return theirs
    pattern, layer = pattern_of(module or name)
    return tuple(_bare(one.replace("{i}", layer), family) + f".{leaf}" for one in column[pattern])


def _check(
    here: str, names: tuple[str, ...], folder: Folder, plan: Plan, parameter: Tensor
) -> None:
    """Raise Unopenable where tensors have other types or shapes than a parameter here needs."""
    for name in names:
        if folder.tensors[name].dtype not in DTYPES:
            raise Unopenable(
                "{name} has numbers of the type {dtype}; supported: {known}.",
                name=name,
                dtype=folder.tensors[name].dtype,
                known=", ".join(DTYPES),
            )
    if not names:
        return
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
    N_("{name} has no place in the model of config.json."),
    N_("{n} tensors have no place in the model of config.json, such as {name}."),
)


def _some(forms: tuple[str, str], names: list[str]) -> Unopenable:
    """Return the error about one tensor or several. forms: its sentence for one, and for more."""
    if len(names) == 1:
        return Unopenable(forms[0], name=names[0])
    return Unopenable(forms[1], name=names[0], n=len(names))

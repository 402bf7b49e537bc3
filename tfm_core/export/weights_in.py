"""The weights and optimiser state of a zip, checked against the experiment; never pickles."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import data_shape
from tfm_core.export import layout
from tfm_core.export.archive import MAX_UNPACKED, Archive, Refused
from tfm_core.probe.types import Array
from tfm_core.reading import Unreadable, check_header, json_of
from tfm_core.runs.status import Status
from tfm_core.sentences import Paragraph
from tfm_core.training.checkpoint_facts import facts_of

if TYPE_CHECKING:
    from tfm_core.models.build import Model


def checkpoints(archive: Archive, experiment: Experiment, status: Status) -> dict[str, bytes]:
    """Return the checkpoints that a zip holds, "last" and "best", their tensors checked.

    Raises Refused.
    """
    files = {"last": layout.WEIGHTS, "best": layout.BEST_WEIGHTS}
    if layout.WEIGHTS not in archive:
        return {}
    shapes = expected_shapes(experiment)
    files_by_name = {}
    for name, file in files.items():
        if file in archive:
            tensors, metadata = _weights(archive, file, experiment, shapes, status)
            if name == "last" and layout.TRAINED_WEIGHTS in archive:
                averaged = {
                    f"average/{one.removeprefix('model/')}": tensors[one] for one in tensors
                }
                trained = layout.TRAINED_WEIGHTS
                tensors = _weights(archive, trained, experiment, shapes, status)[0] | averaged
            if name == "last" and layout.OPTIMISER in archive:
                tensors |= _optimiser(archive, experiment, shapes)
            files_by_name[name] = save(tensors, {"trainer": metadata["trainer"]})
    return files_by_name


def _weights(
    archive: Archive,
    file: str,
    experiment: Experiment,
    shapes: Mapping[str, tuple[int, ...]],
    status: Status,
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the weights as a checkpoint names them, and their metadata. Raises Refused."""
    tensors, metadata = _tensors(archive, file)
    try:
        facts = facts_of(metadata)
    except Unreadable as error:
        raise Refused(
            "{file} does not belong to a run: {why}.", file=file, why=error.sentence
        ) from None
    if facts.step > status.step:
        raise Refused(
            "{file} is from step {step:,}, but the run ended at {last:,}.",
            file=file,
            step=facts.step,
            last=status.step,
        )
    names = layout.weight_names(experiment, list(shapes))
    _check_tensors(tensors, {names[name]: shape for name, shape in shapes.items()}, file)
    return {f"model/{name}": tensors[new] for name, new in names.items()}, metadata


def expected_shapes(experiment: Experiment) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of an experiment's model."""
    state = _laid_out(experiment).state_dict()
    return {name: tuple(value.shape) for name, value in state.items()}


def _laid_out(experiment: Experiment) -> Model:
    """Return an experiment's model; none of its weights is made."""
    from tfm_core.models.build import build_model, init_on_meta

    shape = data_shape(experiment)
    with init_on_meta():
        return build_model(experiment.model, shape)


def _tensors(archive: Archive, name: str) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the tensors of a member and its metadata. Raises Refused."""
    content = archive.read(name, most=MAX_UNPACKED)
    try:
        check_header(Path(name), io.BytesIO(content))
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json_of(content[8 : 8 + length]).get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError):
        raise Refused("{name} is not a safetensors file.", name=name) from None
    return tensors, metadata


def _check_tensors(
    tensors: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], file: str
) -> None:
    """Raise Refused where tensors are not those of the model."""
    lacking, unknown = shapes.keys() - tensors.keys(), tensors.keys() - shapes.keys()
    if lacking or unknown:
        raise Refused(
            Paragraph(
                "export/other-model",
                file=file,
                n_lacking=len(lacking),
                n_unknown=len(unknown),
                name=min(lacking or unknown),
            )
        )
    for name, shape in shapes.items():
        value = tensors[name]
        if value.shape != shape:
            raise Refused(
                "{name} in {file} has the shape {found}; the model needs {shape}.",
                name=name,
                file=file,
                found=str(tuple(value.shape)),
                shape=str(shape),
            )
        _check_numbers(name, value, file)


def _check_numbers(name: str, value: Array, file: str) -> None:
    if value.dtype != np.float32:
        raise Refused(
            "{name} in {file} is {found}, not float32.",
            name=name,
            file=file,
            found=str(value.dtype),
        )
    if not np.isfinite(value).all():
        raise Refused("{name} in {file} has infinite or NaN weights.", name=name, file=file)


def _optimiser(
    archive: Archive, experiment: Experiment, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """Return what the optimiser remembers of each weight. Raises Refused."""
    from tfm_core.training.optimisation import memory_names

    tensors, _metadata = _tensors(archive, layout.OPTIMISER)
    memory = memory_names(_laid_out(experiment), experiment.trained)
    fields: dict[str, set[str]] = {}
    for key, value in tensors.items():
        head, _, rest = key.partition("/")
        parameter, _, name = rest.partition("/")
        is_known = head == "optimizer" and name in memory.get(parameter, set()) | {"step"}
        is_known &= parameter in shapes
        if not is_known or value.shape != (() if name == "step" else shapes[parameter]):
            raise Refused(
                "{file} does not fit this optimiser: {name} is unknown.",
                file=layout.OPTIMISER,
                name=key[:200],
            )
        _check_numbers(key, value, layout.OPTIMISER)
        fields.setdefault(parameter, set()).add(name)
    if any(not memory[parameter] <= names for parameter, names in fields.items()) or (
        len({frozenset(names) for names in fields.values()}) > len(set(memory.values()))
    ):
        raise Refused("{file} holds only a part of the optimiser's state.", file=layout.OPTIMISER)
    return tensors

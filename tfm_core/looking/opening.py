"""A look as a run, so that pages show it: its maps as one snapshot, its tokens as the examples.

Pages show layers of one shape. A model with several (windows, stages) shows those of which it has
most; ``left_out`` names the rest, which stay in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfm_core.config import ConfigError, Experiment
from tfm_core.config.pretrained_tasks import MAX_NAME
from tfm_core.data.opened.spelling import text_of
from tfm_core.looking.seen import AttentionMap, Seen
from tfm_core.looking.unseen import sizes
from tfm_core.probe.form import MAX_EXAMPLES
from tfm_core.probe.snapshot import half
from tfm_core.probe.types import Array, Snapshot
from tfm_core.runs.record import snapshots
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

_MAX_NUMBERS = 2**27
"""Of all maps of a run: 256 MB in half precision."""
_MAX_VECTOR_BYTES = 2**28
"""Of all queries, keys and values of a run."""
_MAX_NAMES, _MAX_TEXT = 100_000, 120
_PER_HEAD = 8
"""The width of a head in the configuration, which no page shows."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """The maps that a run shows: of an encoder, of a decoder, and of what it reads of the first."""

    encoder: tuple[AttentionMap, ...] = ()
    decoder: tuple[AttentionMap, ...] = ()
    cross: tuple[AttentionMap, ...] = ()

    @property
    def all(self) -> tuple[AttentionMap, ...]:
        """Every map."""
        return (*self.encoder, *self.decoder, *self.cross)


def stacks_of(look: Seen) -> Stacks:
    """Return the maps that a run can show: as many as have one shape. Raises StudentError."""
    if not look.maps:
        raise StudentError("This look has no map to open.")
    cross = _alike(one for one in look.maps.values() if one.kind == "cross")
    own = [one for one in look.maps.values() if one.kind == "self" and _is_square(one)]
    if not cross and not own:
        raise StudentError(
            "No map of this look can be opened: its keys are other positions than its queries."
        )
    alike = _alike(own)
    if not cross:
        return Stacks(decoder=alike) if alike[0].is_causal else Stacks(encoder=alike)
    batch, n_heads, n_queries, n_keys = cross[0].weights.shape

    def square(size: int, *, writes: bool) -> tuple[AttentionMap, ...]:
        shape = (batch, n_heads, size, size)
        return tuple(one for one in own if one.weights.shape == shape and _writes(one) is writes)

    encoder, decoder = square(n_keys, writes=False), square(n_queries, writes=True)
    if len(alike) > len(cross) and not encoder and not decoder:
        return Stacks(decoder=alike) if alike[0].is_causal else Stacks(encoder=alike)
    return Stacks(encoder, decoder if len(decoder) == len(cross) else (), cross)


def _alike(maps: Iterable[AttentionMap]) -> tuple[AttentionMap, ...]:
    """Return the maps of the shape that most have."""
    groups: dict[tuple[Any, ...], list[AttentionMap]] = {}
    for one in maps:
        groups.setdefault((one.is_causal, *one.weights.shape), []).append(one)
    largest: list[AttentionMap] = max(groups.values(), key=len, default=[])
    return tuple(largest)


def _is_square(one: AttentionMap) -> bool:
    return one.weights.shape[-2] == one.weights.shape[-1]


def _writes(one: AttentionMap) -> bool:
    return one.is_causal or "decoder" in one.name.split(".")


def check_room(look: Seen) -> None:
    """Raise StudentError where no run can show a look. Asks only for the shapes of its weights."""
    _n_examples(stacks_of(look))


def left_out(look: Seen) -> tuple[str, ...]:
    """Return the names of the maps that the run of a look does not show."""
    shown = {one.name for one in stacks_of(look).all}
    return tuple(name for name in look.maps if name not in shown)


def open_look(
    look: Seen,
    store: RunStore,
    *,
    name: str | None = None,
    owner: str | None = None,
    owner_name: str | None = None,
) -> Run:
    """Make a run of a look for ``owner``. Raises ValueError, in a sentence, with no run made."""
    stacks = stacks_of(look)
    n_examples = _n_examples(stacks)
    experiment = _experiment(look, stacks)
    items = [_item(look, stacks, number) for number in range(1, n_examples + 1)]
    snapshot = _snapshot(stacks, n_examples)

    def fill(folder: Path) -> None:
        snapshots.write_probe(folder, {"kind": "text", "items": items})
        snapshots.write(folder, snapshot)
        Run(folder).snapshot(0)

    return store.bring(
        experiment,
        Status("opened", total_steps=experiment.training.steps),
        fill,
        name=name or look.model,
        owner=owner,
        owner_name=owner_name,
    )


def _n_examples(stacks: Stacks) -> int:
    """Return how many examples of the batch a run keeps. Raises StudentError if not even one."""
    each = sum(one.weights[0].numel() for one in stacks.all)
    if each > _MAX_NUMBERS:
        raise StudentError(
            "The maps of one example take {size} in a run; {most} are allowed. Look at some layers "
            "(layers=) or fewer positions (crop=).",
            **sizes(2 * each, 2 * _MAX_NUMBERS),
        )
    return min(len(stacks.all[0].weights), MAX_EXAMPLES, max(1, _MAX_NUMBERS // each))


def _experiment(look: Seen, stacks: Stacks) -> Experiment:
    """Return the configuration that has such maps. Raises StudentError where none has."""
    n_heads = stacks.all[0].weights.shape[1]
    block = {"n_heads": n_heads, "d_model": _PER_HEAD * n_heads}
    task: dict[str, Any] = {
        "kind": "look",
        "called": look.model[:MAX_NAME],
        "n_parameters": look.n_parameters,
        "modules": "\n".join(" ".join(one.name.split()) for one in stacks.all)[:_MAX_NAMES],
        "n_left_out": len(look.maps) - len(stacks.all),
        "unseen": "\n".join(" ".join(one.split()) for one in look.unseen)[:_MAX_NAMES],
    }
    model: dict[str, Any]
    if stacks.cross:
        queries, keys = stacks.cross[0].weights.shape[2:]
        layers = {
            "n_encoder_layers": len(stacks.encoder) or 1,
            "n_decoder_layers": len(stacks.cross),
        }
        model = {"family": "encoder-decoder", **block, **layers}
        task |= {"reads": "pair", "src_len": keys, "tgt_len": queries - 1}
        task["bos"] = _written(look, stacks)[0]
    elif stacks.decoder:
        model = {"family": "decoder-only", **block, "n_layers": len(stacks.decoder)}
        words = _written(look, stacks)
        task |= {"reads": "text", "src_len": 0, "tgt_len": len(words) - 1, "bos": words[0]}
    else:
        model = {"family": "encoder-only", **block, "n_layers": len(stacks.encoder)}
        task |= {"reads": "tokens", "src_len": stacks.encoder[0].weights.shape[2]}
    if "bos" in task:
        task["bos"] = task["bos"][:100]
    try:
        return Experiment.parse({"model": model, "task": task})
    except ConfigError as error:
        raise StudentError("This look cannot be opened: {why}", why=error.sentence) from None


def _written(look: Seen, stacks: Stacks) -> Sequence[str]:
    """Return the names of the positions that a decoder has."""
    return look.names((stacks.cross or stacks.decoder)[0])[0]


def _item(look: Seen, stacks: Stacks, number: int) -> dict[str, Any]:
    """Return an example of the probe. number: in the batch, from 1."""
    src: Sequence[str] = ()
    if stacks.cross:
        src = look.names(stacks.cross[0])[1]
    elif stacks.encoder:
        src = look.names(stacks.encoder[0])[0]
    tgt = _written(look, stacks)[1:] if stacks.cross or stacks.decoder else ()
    item: dict[str, Any] = {
        "src": list(src),
        "tgt": list(tgt),
        "alignment": [[] for _one in tgt],
        "src_text": _text(look, src or _written(look, stacks)),
        "tgt_text": text_of(tgt),
    }
    if not src:
        item["prompt"] = len(tgt)
    return item


def _text(look: Seen, names: Sequence[str]) -> str:
    """Return what is read in one line: its beginning, or the model's name for mere numbers."""
    if not look.tokens:
        return look.model
    text = text_of(names)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def _snapshot(stacks: Stacks, n_examples: int) -> Snapshot:
    attention: dict[str, Array] = {}
    masks: dict[str, Array] = {}
    vectors: dict[str, dict[str, Array]] = {}
    for stack, name, maps in (
        ("encoder", "self_attention", stacks.encoder),
        ("decoder", "self_attention", stacks.decoder),
        ("decoder", "cross_attention", stacks.cross),
    ):
        for layer, one in enumerate(maps):
            module = f"{stack}.layers.{layer}.{name}"
            attention[module] = half(one.weights[:n_examples])
            masks[module] = (
                np.ones((1, 1, 1, 1), np.bool_)
                if one.allowed is None
                else one.allowed[:n_examples].numpy()
            )
            if one.vectors is not None:
                vectors[module] = {
                    name: (values[:n_examples] if values.ndim else values).numpy()
                    for name, values in one.vectors.tensors.items()
                }
    if sum(array.nbytes for of in vectors.values() for array in of.values()) > _MAX_VECTOR_BYTES:
        vectors = {}
    return Snapshot(step=0, attention=attention, masks=masks, vectors=vectors)

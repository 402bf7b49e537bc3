"""What the probe of an experiment and its snapshots must look like: checked once, when read.

Run folders are untrusted. What passes here fits the experiment and is consistent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from tfm_core.choices.config import CaptionTaskConfig, Experiment
from tfm_core.data import caption_words
from tfm_core.probe.labels import axes, modules_by_kind, patches_per_side
from tfm_core.probe.types import RELATIVE, Array, Probe, Snapshot
from tfm_core.reading import Unreadable, is_number, is_whole
from tfm_core.sentences import N_
from tfm_core.stored import Stored, WrongValue, text, whole

MAX_EXAMPLES = 64
"""The most examples of a probe; a worker takes ten or fewer."""
_MAX_TEXT = 100_000  # characters of one example
_MAX_NUMBER = 10**6  # of a class, a token or a pixel
_MIN_DEVIATION = 1e-6  # of pixels from 0 to 1; pictures are divided by it
_N_BUCKETS = 32  # of offsets, for which a head learns a number (layers.relative)

Text = Annotated[str, text(_MAX_TEXT)]
Number = Annotated[int, whole(0, _MAX_NUMBER)]
Row = Annotated[list[Text], Field(strict=True)]
Numbers = Annotated[list[Number], Field(strict=True)]
Alignment = Annotated[list[Numbers], Field(strict=True)]
"""The indices of the source tokens of each target token."""
Box = Annotated[list[Number], Field(strict=True, min_length=4, max_length=4)]


@dataclass(frozen=True, slots=True)
class _Classified:
    """A picture of a class; None for a model that was trained elsewhere."""

    label: Number | None = None

    def fits(self, experiment: Experiment) -> bool:
        """Say whether it can be an example of an experiment."""
        if self.label is None:
            return experiment.training is None
        return self.label < len(experiment.task.class_names)


@dataclass(frozen=True, slots=True)
class _Answered:
    """Source, target, and the sources of each target token."""

    src: Row
    tgt: Row
    tgt_text: Text
    alignment: Alignment

    def is_aligned(self) -> bool:
        """Say whether there is a list of source tokens for each target token."""
        n_sources = len(self.src)
        numbers = (number for row in self.alignment for number in row)
        return len(self.alignment) == len(self.tgt) and all(n < n_sources for n in numbers)


@dataclass(frozen=True, slots=True)
class _Described(_Answered):
    """A captioned picture, with the box of each word's digit, if any."""

    boxes: Annotated[list[Box | None], Field(strict=True)]

    def fits(self, experiment: Experiment) -> bool:
        """Say whether it can be an example of an experiment."""
        task = experiment.task_as(CaptionTaskConfig)
        return (
            self.is_aligned()
            and bool(self.tgt)
            and len(self.src) == patches_per_side(experiment) ** 2
            and len(self.tgt) <= caption_words.longest(task)
            and len(self.boxes) == len(self.tgt)
            and all(
                left < right <= task.image_size and top < bottom <= task.image_size
                for left, top, right, bottom in filter(None, self.boxes)
            )
        )


@dataclass(frozen=True, slots=True)
class _OfWords(_Answered):
    """A text. prompt: how many of its tokens are given to continue."""

    src_text: Text
    prompt: Annotated[int, whole(1, _MAX_NUMBER)] | None = None

    def fits(self, experiment: Experiment) -> bool:
        """Say whether it can be an example of an experiment."""
        task = experiment.task
        return (
            self.is_aligned()
            and (
                bool(self.tgt) == (task.max_tgt_len > 0)
                or (not self.tgt and not task.is_trained_here)
            )
            and len(self.src) <= task.max_src_len
            and bool(self.src) == task.has_source
            and len(self.tgt) <= task.max_tgt_len
            and (self.prompt is None) == task.has_source
            and (self.prompt or 0) <= len(self.tgt)
        )


_FILE = "probe.json"
_ITEMS: dict[str, Stored[_Classified] | Stored[_Described] | Stored[_OfWords]] = {
    "image": Stored(_Classified, _FILE),
    "caption": Stored(_Described, _FILE),
    "text": Stored(_OfWords, _FILE),
}
"""The form of an example, by the kind of the probe."""
_TOKENS = TypeAdapter(Annotated[list[Row], Field(strict=True)])
_TEXTS = TypeAdapter(Row)


@dataclass(frozen=True, slots=True)
class SnapshotForm:
    """What every snapshot of a run must look like; parts may be missing.

    n_examples: P, None if the probe is unknown; n_attended: at least so many have attention, None
    for all; maps: attention module -> heads, least queries and keys; n_classes: of a picture, None
    for texts; d_model, n_heads: of position tables; n_patches: rows of a table of patches;
    n_experts: of each mixture, 0 where there is none.
    """

    n_examples: int | None
    n_attended: int | None
    maps: Mapping[str, tuple[int, int, int]]
    n_classes: int | None
    d_model: int
    n_heads: int
    n_patches: int | None = None
    n_experts: int = 0

    def check(self, snapshot: Snapshot) -> None:
        """Raise Unreadable, in a clause, where a snapshot is not of this form."""
        n_watched = self.n_examples if self.n_attended is None else None
        for name, weights in snapshot.attention.items():
            if name not in self.maps:
                raise Unreadable("it holds attention of a layer that this model lacks")
            n_heads, n_queries, n_keys = self.maps[name]
            n_watched = _examples(weights, n_watched, ndim=4)
            most = MAX_EXAMPLES if self.n_examples is None else self.n_examples
            if not (self.n_attended or 1) <= n_watched <= most:
                raise Unreadable("it is not one of the examples of this run")
            if weights.shape[1] != n_heads:
                raise Unreadable(
                    "{name} has {found} heads, but this model {n_heads}",
                    name=name,
                    found=weights.shape[1],
                    n_heads=n_heads,
                )
            if weights.shape[2] < n_queries or weights.shape[3] < n_keys:
                raise Unreadable("the maps of {name} are too small for the examples", name=name)
            self._check_mask(name, snapshot.masks.get(name), weights)
        for name, vectors in snapshot.vectors.items():
            if name not in snapshot.attention:
                raise Unreadable("it holds attention of a layer that this model lacks")
            if problem := problem_of(vectors, snapshot.attention[name].shape):
                raise Unreadable("“{name}” has {what}", name=name, what=problem)
        self._check_routing(snapshot, n_watched)
        check = self._check_words if self.n_classes is None else self._check_classes
        check(snapshot, self.n_examples)
        self._check_tables(snapshot)

    def _check_mask(self, name: str, mask: Array | None, weights: Array) -> None:
        if mask is None:
            raise Unreadable("the mask of {name} is missing", name=name)
        fits = mask.ndim == 4 and all(
            size in (1, full) for size, full in zip(mask.shape, weights.shape, strict=True)
        )
        if mask.dtype.kind != "b" or not fits:
            raise Unreadable("the mask of {name} does not fit its maps", name=name)

    def _check_routing(self, snapshot: Snapshot, n: int | None) -> None:
        for name, gates in snapshot.routing.items():
            block, _dot, last = name.rpartition(".")
            attention = self.maps.get(f"{block}.self_attention")
            if not self.n_experts or last != "feed_forward" or attention is None:
                raise Unreadable("it holds experts of a layer that this model lacks")
            _examples(gates, n, ndim=3)
            if gates.shape[1] < attention[1] or gates.shape[2] != self.n_experts:
                raise Unreadable("the experts of {name} are not those of its tokens", name=name)
            if not ((gates >= 0) & (gates <= 1)).all():
                raise Unreadable("the shares of {name} are not valid", name=name)

    def _check_classes(self, snapshot: Snapshot, n: int | None) -> None:
        words = (snapshot.ids, snapshot.confidence, snapshot.tokens, snapshot.texts)
        if any(part is not None for part in words):
            raise Unreadable("it does not hold the predictions of a model of pictures")
        if snapshot.probabilities is None:
            return
        _examples(snapshot.probabilities, n, ndim=2)
        if snapshot.probabilities.shape[1] != self.n_classes:
            raise Unreadable("its predictions are not those of {n} classes", n=self.n_classes)

    def _check_words(self, snapshot: Snapshot, n: int | None) -> None:
        ids, confidence, tokens = snapshot.ids, snapshot.confidence, snapshot.tokens
        if snapshot.probabilities is not None:
            raise Unreadable("it does not hold the predictions of a model of words")
        longest = _MAX_TEXT
        for numbers in (ids, confidence):
            if numbers is not None:
                n = _examples(numbers, n, ndim=2)
                longest = min(longest, numbers.shape[1])
        if ids is not None and ids.dtype.kind != "i":
            raise Unreadable("its predictions are not numbers of words")
        for found, adapter in ((tokens, _TOKENS), (snapshot.texts, _TEXTS)):
            if found is None:
                continue
            try:
                adapter.validate_python(found)
            except ValidationError:
                raise Unreadable("its predictions are not words") from None
            if not found or n not in (None, len(found)):
                raise Unreadable("its predictions are not those of the examples of this run")
        if tokens is not None and max(map(len, tokens)) > longest:
            raise Unreadable("it has more words than numbers of words")

    def _check_tables(self, snapshot: Snapshot) -> None:
        for name, table in (*snapshot.positions.items(), *snapshot.embeddings.items()):
            if table.ndim == 0 or not table.size:
                raise Unreadable("its table {name} is empty", name=name)
        for name, table in snapshot.positions.items():
            is_relative = name.endswith(RELATIVE)
            if is_relative and table.shape != (_N_BUCKETS, self.n_heads):
                raise Unreadable("its table {name} does not hold offsets and heads", name=name)
            if is_relative or table.ndim != 2:
                continue
            is_of_patches = self.n_patches is not None and not name.startswith("tgt")
            if table.shape[1] != self.d_model or (is_of_patches and len(table) != self.n_patches):
                raise Unreadable("its table {name} does not hold positions", name=name)
        if any(table.ndim != 2 for table in snapshot.embeddings.values()):
            raise Unreadable("its embeddings are not tables")


def form_of(experiment: Experiment, probe: Probe | None) -> SnapshotForm:
    """Return the form of the snapshots of an experiment with a checked probe, or an unknown one."""
    model, task = experiment.model, experiment.task
    maps = {}
    for modules in modules_by_kind(experiment).values():
        for name in modules:
            items = () if probe is None else probe.items
            sizes = [axes(experiment, item, name).shape for item in items]
            rows, columns = (max((size[axis] for size in sizes), default=1) for axis in (0, 1))
            maps[name] = (model.n_heads, rows, columns)
    n_patches = None
    if task.picture_shape:
        n_patches = patches_per_side(experiment) ** 2 + experiment.has_cls
    return SnapshotForm(
        n_examples=None if probe is None else len(probe.items),
        n_attended=None if probe is None else probe.n_attended,
        maps=maps,
        n_classes=len(task.class_names) or None,
        d_model=getattr(model, "d_model", 0),
        n_heads=model.n_heads,
        n_patches=n_patches,
        n_experts=getattr(model, "n_experts", 0),
    )


def check_probe(experiment: Experiment, probe: Probe) -> None:
    """Raise Unreadable, in a clause, where a probe is not one of an experiment."""
    task = experiment.task
    words = "caption" if task.picture_shape else "text"
    if probe.kind != ("image" if task.class_names else words):
        raise Unreadable("its examples are not those of {task}", task=task.facts.label)
    if not 1 <= len(probe.items) <= MAX_EXAMPLES:
        raise Unreadable("it has {n:,} examples", n=len(probe.items))
    if probe.n_attended is not None and not is_whole(probe.n_attended, 1, len(probe.items)):
        raise Unreadable("it does not say of how many examples the attention is kept")
    for number, item in enumerate(probe.items, 1):
        try:
            fits = _ITEMS[probe.kind].read(item).fits(experiment)
        except WrongValue:
            fits = False
        if not fits:
            raise Unreadable("its example {number} does not belong to this task", number=number)
    if task.picture_shape:
        shape = (len(probe.items), *task.picture_shape)
        images = probe.images
        if images is None or images.shape != shape or images.dtype.name != "uint8":
            raise Unreadable("its pictures are not those of {task}", task=task.facts.label)
        _check_scale(probe, task.picture_shape[0])


def _check_scale(probe: Probe, n_channels: int) -> None:
    if probe.mean is None and probe.std is None:
        return
    for values, low in ((probe.mean, 0.0), (probe.std, _MIN_DEVIATION)):
        is_list = isinstance(values, list) and len(values) == n_channels
        if not is_list or not all(is_number(one, low, 1.0) for one in values or ()):
            raise Unreadable("it does not say how its pictures are scaled")


def _examples(array: Array, n: int | None, *, ndim: int) -> int:
    """Return the number of examples of an array. Raises Unreadable if it is impossible."""
    if array.ndim != ndim or not 1 <= len(array) <= MAX_EXAMPLES or n not in (None, len(array)):
        raise Unreadable("it is not one of the examples of this run")
    return len(array)


_NEEDED = ("query", "key", "value", "divisor", "output")
"""What the attention map of a look was computed from; ``looking.vectors`` says what each means."""
_MAX_WIDTH = 2**16


def problem_of(found: Mapping[str, Array], shape: Sequence[int]) -> str:
    """Return what is wrong with vectors of weights of a shape, in a clause, or "".

    shape: (batch, n_heads, query_len, key_len).
    """
    batch, n_heads, n_queries, n_keys = shape
    if missing := [name for name in _NEEDED if name not in found]:
        return N_("no {name}", name=missing[0])
    width, depth = (found[name].shape[-1:] for name in ("query", "value"))
    wanted: dict[str, tuple[int, ...]] = {
        "query": (batch, n_heads, n_queries, *width),
        "key": (batch, n_heads, n_keys, *width),
        "value": (batch, n_heads, n_keys, *depth),
        "output": (batch, n_heads, n_queries, *depth),
        "rest": (batch, n_heads, n_queries),
        "divisor": (),
    }
    for name, values in found.items():
        if values.dtype != np.float32:
            return N_("a {name} that is not float32", name=name)
        is_bias = name == "bias" and values.ndim == 4
        fits = (
            all(size in (1, full) for size, full in zip(values.shape, shape, strict=True))
            if is_bias
            else values.shape == wanted.get(name)
        )
        if not fits or not values.size or max(values.shape, default=1) > _MAX_WIDTH:
            return N_("a {name} of another shape", name=name)
        is_sound = ~np.isnan(values) & (values < np.inf) if name == "rest" else np.isfinite(values)
        if not is_sound.all() or (name == "divisor" and not values):
            return N_("a {name} that is not a number", name=name)
    return ""

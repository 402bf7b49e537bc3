"""One picture of a model at work on one example: what stands in it, and every number it shows.

The picture has a lane for each stack. A lane runs from the tokens through the parts of the anatomy
to the answer; its rows are tokens. The numbers are those of one recorded forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.anatomy import Attention, Part, Sublayer, sublayers
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.sentences import N_
from tfm_core.trace.steps import token_axis
from tfm_core.trace.subject import Subject

Kind = Literal["tokens", "image", "vectors", "heads", "answers"]
PADDING = SPECIALS[0]
N_ANSWERS = 5
_TITLES: dict[str, dict[str, str]] = {
    "stem": {
        "{path}.projected": N_("Patch embedding"),
        "{path}.patches.projected": N_("Patch embedding"),
    },
    "positions": {"{path}.placed": N_("+ positions")},
    "segments": {"{path}.added": N_("+ segments")},
    "pooling": {"head.pooled": N_("Pooling"), "output.answering": N_("Pooling")},
    "readout": {"output.answering": N_("Context + state")},
}
"""Kind of a part -> what is recorded of it, as far as it is there, and its title."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One thing in the picture.

    part: of the model. title: what it is. key: what was recorded, as a capture calls it. values:
    vectors (rows, width), maps (H, rows, keys) with NaN where masked, probabilities (rows, 5), or a
    picture (channels, size, size); None where there is only a shape. shape: of the values. rows:
    the row of the lane that each of its rows belongs to, -1 where it belongs to all. keys: the lane
    whose tokens a map's keys are. block: number of its block from 1, 0 outside. step: the step of
    the walk that explains it, "" for none. words: of probabilities, the token of each.
    skips_from: place in the lane of the vectors that are added to it, -1 for none. is_norm: whether
    a norm made it. scores: of maps, what the softmax is taken of (H, rows, keys). before: of
    probabilities, what the whole model gives the same words (rows, 5); were: its likeliest word of
    each row; sure: what it gives these and what is left of it, on average. None and () where
    nothing is knocked out. truths: of probabilities, the one right word of each row, () where there
    is none.
    """

    kind: Kind
    part: Part
    title: str
    key: str
    values: npt.NDArray[np.float32] | None
    shape: tuple[int, ...]
    rows: tuple[int, ...] = ()
    keys: int = 0
    block: int = 0
    step: str = ""
    words: tuple[tuple[str, ...], ...] = ()
    skips_from: int = -1
    is_norm: bool = False
    scores: npt.NDArray[np.float32] | None = None
    before: npt.NDArray[np.float32] | None = None
    were: tuple[str, ...] = ()
    sure: tuple[float, ...] = ()
    truths: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of its part."""
        return self.part.path


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A stack and what stands before and behind it. tokens: the names of its rows."""

    name: str
    tokens: tuple[str, ...]
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A model at work."""

    lanes: tuple[Lane, ...]


def picture(subject: Subject, example: int = 0, *, whole: Subject | None = None) -> Picture:
    """Return the picture of a model and one of its examples, from 0.

    whole: the same model and examples before parts were knocked out. Padding is left out of the
    picture. A model that is known by its shapes alone has stages without values.
    """
    subject = subject.looked_at
    lanes: list[_Lane] = []
    parts = subject.anatomy.parts
    for part in parts:
        if not lanes or (part.kind == "input" and lanes[-1].has_stack):
            stack = next(one for one in parts[parts.index(part) :] if one.kind == "stack")
            lanes.append(_Lane(subject, example, len(lanes), stack, whole))
        lanes[-1].add(part)
    return Picture(tuple(Lane(one.name, one.tokens, tuple(one.stages)) for one in lanes))


@dataclass(slots=True, eq=False)
class _Lane:
    """A lane in the making."""

    subject: Subject
    example: int
    number: int
    stack: Part
    whole: Subject | None
    stages: list[Stage] = field(default_factory=list)
    kept: list[int] = field(init=False)
    tokens: tuple[str, ...] = field(init=False)
    has_stack: bool = False

    def __post_init__(self) -> None:
        self.kept, self.tokens = _tokens(self.subject, self.stack, self.example)

    @property
    def name(self) -> str:
        return self.stack.path

    def add(self, part: Part) -> None:
        """Add the stages of one of the model's top parts."""
        adders = {
            "stack": self._add_stack,
            "input": self._add_input,
            "embedding": self._add_embedding,
            "head": self._add_answers,
        }
        if part.kind in adders:
            adders[part.kind](part)
        if part.kind == "positions" and f"{part.path}.rows" not in self.subject.cache:
            return  # they act in attention, or nowhere
        for what, title in _TITLES.get(part.kind, {}).items():
            self._add_vectors(what.format(path=part.path), part, title)

    def _add_embedding(self, part: Part) -> None:
        if not any(stage.step == "embedding" for stage in self.stages):
            self._add_vectors(f"{part.path}.embedded", part, N_("Embedding"))

    def _add_input(self, part: Part) -> None:
        if self.subject.pictures is not None and self.number == 0:
            image = self.subject.pictures[self.example].astype(np.float32)
            n_patches = len(self.subject.tokens("patches", self.example) or ())
            rows = tuple(range(len(self.kept)))[-n_patches:] if n_patches else ()
            self.stages.append(
                Stage("image", part, N_("Picture"), "", image, image.shape, rows, step=_step(part))
            )
        elif not self.stages:
            rows = tuple(range(len(self.kept)))
            self.stages.append(
                Stage("tokens", part, N_("Tokens"), "", None, (len(rows),), rows, step=_step(part))
            )

    def _add_stack(self, stack: Part) -> None:
        self.has_stack = True
        blocks = [child for child in stack.children if child.layer == "Block"]
        for number, block in enumerate(blocks, 1):
            for sublayer in sublayers(block):
                self._add_sublayer(block, sublayer, number)
        if not blocks:
            self._add_recurrent(stack)
        elif stack.children[-1].kind == "norm":
            self._add_vectors(f"{stack.path}.output", stack.children[-1], N_("Final norm"))

    def _add_sublayer(self, block: Part, sublayer: Sublayer, number: int) -> None:
        cache, layer = self.subject.cache, sublayer.layer
        before = self._last_vectors()
        norm = f"{layer.path}_norm"
        if sublayer.norm is not None and sublayer.norm_first:
            self._add_vectors(f"{norm}.normed", sublayer.norm, N_("Norm"), number)
        if sublayer.is_normed:
            before = self._last_vectors()
        if isinstance(layer, Attention):
            self._add_heads(layer, number)
        elif layer.layer == "MixtureOfExperts":
            self._add_vectors(f"{layer.path}.gates", layer, N_("Experts"), number)
        else:
            self._add_vectors(f"{layer.path}.hidden", layer, N_("Feed-forward"), number)
        skip = before if sublayer.has_sum else -1
        title = N_("+ residual") if sublayer.has_sum else N_("Output")
        if f"{norm}.total" in cache and sublayer.norm is not None:
            self._add_vectors(f"{norm}.total", sublayer.residual, title, number, skip)
            self._add_vectors(f"{norm}.joined", sublayer.norm, N_("Norm"), number)
        else:
            self._add_vectors(f"{norm}.joined", sublayer.residual, title, number, skip)

    def _add_recurrent(self, stack: Part) -> None:
        for part in stack:
            if isinstance(part, Attention) or part.kind == "attention":
                self._add_vectors(f"{stack.path}.tops", stack, N_("State"))
                self._add_heads(part, 0)
                self._add_vectors(f"{stack.path}.contexts", stack, N_("Context"))
                return
        self._add_vectors(f"{stack.path}.read", stack.children[0], N_("State"))

    def _add_heads(self, part: Part, block: int) -> None:
        weights = self.subject.cache[f"{part.path}.weights"]
        is_cross = part.path.endswith("cross_attention")
        keys = 0 if is_cross else self.number
        stack = next(part for part in self.subject.anatomy.parts if part.kind == "stack")
        kept = _tokens(self.subject, stack, self.example)[0]
        columns = kept if is_cross else self.kept
        n_heads = weights.size(1)
        values = scores = None
        if not weights.is_meta:
            values, scores = (
                self._map(part.path, what, columns) for what in ("weights", "masked_scores")
            )
        title = N_("Cross-attention") if is_cross else N_("Attention")
        shape = (n_heads, len(self.kept), len(columns))
        rows = tuple(range(len(self.kept)))
        self.stages.append(
            Stage(
                "heads",
                part,
                title,
                f"{part.path}.weights",
                values,
                shape,
                rows,
                keys,
                block,
                _step(part, "softmax"),
                scores=scores,
            )
        )

    def _map(self, path: str, what: str, columns: list[int]) -> npt.NDArray[np.float32]:
        """Return one example's maps (H, rows, keys), NaN where a key is masked."""
        cache = self.subject.cache
        tensor, mask = cache[f"{path}.{what}"], cache.get(f"{path}.mask")
        seen = tensor[self.example].float()
        if mask is not None:
            allowed = mask.expand(mask.size(0), *seen.shape)[min(self.example, mask.size(0) - 1)]
            seen = seen.masked_fill(~allowed, float("nan"))
        return np.asarray(seen[:, self.kept][:, :, columns].cpu())

    def _add_vectors(
        self, key: str, part: Part, title: str, block: int = 0, skips_from: int = -1
    ) -> None:
        tensor = self.subject.cache.get(key)
        if tensor is None:
            return
        values, rows = self._rows_of(tensor)
        shape = (len(rows), tensor.size(-1))
        self.stages.append(
            Stage(
                "vectors",
                part,
                title,
                key,
                values,
                shape,
                rows,
                0,
                block,
                _step(part),
                skips_from=skips_from,
                is_norm=part.kind == "norm",
            )
        )

    def _rows_of(self, tensor: Tensor) -> tuple[npt.NDArray[np.float32] | None, tuple[int, ...]]:
        """Return the example's vectors, without padding, and the row of the lane of each."""
        n_rows = tensor.size(1) if tensor.dim() > 2 else 1
        is_lane = n_rows == self._n_tokens and tensor.dim() > 2
        rows = tuple(range(len(self.kept))) if is_lane else self._answering(tensor, n_rows)
        if tensor.is_meta:
            return None, rows
        own = tensor[min(self.example, tensor.size(0) - 1)].reshape(n_rows, -1).float()
        own = own[self.kept] if is_lane else own[: len(rows)]
        return own.cpu().numpy(), rows

    @property
    def _n_tokens(self) -> int:
        return _n_tokens(self.subject, self.stack)

    def _answering(self, tensor: Tensor, n_rows: int) -> tuple[int, ...]:
        """Return the rows that answer: the last ones of a sequence of source and target."""
        if tensor.dim() < 3 or n_rows == 1 or self.stack.path != "decoder":
            return (-1,) * (1 if tensor.dim() < 3 else n_rows)
        first = self._n_tokens - n_rows
        return tuple(row for row, at in enumerate(self.kept) if at >= first)

    def _last_vectors(self) -> int:
        return max((n for n, one in enumerate(self.stages) if one.kind == "vectors"), default=-1)

    def _add_answers(self, part: Part) -> None:
        logits = _logits(self.subject)
        names = self.subject.tokens("vocabulary", 0) or self.subject.tokens("classes", 0)
        scores, rows = self._rows_of(logits)
        n = min(N_ANSWERS, logits.size(-1))
        step = _step(part, "whole")
        if scores is None or not names:
            shape = (len(rows), logits.size(-1))
            title = N_("Vector of the text") if self.subject.reader == "pooler" else N_("Logits")
            self.stages.append(
                Stage("vectors", part, title, "logits", scores, shape, rows, step=step)
            )
            return
        now = torch.from_numpy(scores).softmax(-1)
        best = now.topk(n)
        words = tuple(tuple(names[i] for i in row) for row in best.indices.tolist())
        before, were, sure = None, tuple[str, ...](), tuple[float, ...]()
        if self.whole is not None:
            then = torch.from_numpy(self._rows_of(_logits(self.whole))[0]).softmax(-1)
            before = then.gather(-1, best.indices).numpy()
            most = then.argmax(-1, keepdim=True)
            were = tuple(names[i] for i in most[:, 0].tolist())
            sure = tuple(float(part.gather(-1, most).mean()) for part in (then, now))
        self.stages.append(
            Stage(
                "answers",
                part,
                N_("Probabilities"),
                "logits",
                best.values.numpy(),
                tuple(best.values.shape),
                rows,
                step=step,
                words=words,
                before=before,
                were=were,
                sure=sure,
                truths=self._truths(len(rows)),
            )
        )

    def _truths(self, n_rows: int) -> tuple[str, ...]:
        subject = self.subject
        if not subject.truth or subject.reader == "language":  # a text may go on in many ways
            return ()
        truths = tuple(subject.truth[self.example])
        return truths if len(truths) == n_rows else ()


def _logits(subject: Subject) -> Tensor:
    cache = subject.cache
    return cache["head.logits"] if "head.logits" in cache else cache["output.logits"]


def _step(part: Part, preferred: str = "") -> str:
    names = [name for one in part for name in one.steps]
    return preferred if preferred in names else next(iter(names), "")


def _n_tokens(subject: Subject, stack: Part) -> int:
    cache = subject.cache
    names = (f"{stack.path}.input", f"{stack.path}.read", f"{stack.path}.tops")
    return next(cache[name].size(1) for name in names if name in cache)


def _tokens(subject: Subject, stack: Part, example: int) -> tuple[list[int], tuple[str, ...]]:
    """Return the places of a stack's tokens that are no padding, and their names."""
    n_tokens = _n_tokens(subject, stack)
    is_written = any(part.path.endswith("cross_attention") for part in stack)
    axis = "T:tgt" if is_written else token_axis(subject, stack)
    names = subject.tokens(axis.partition(":")[2], example)
    if names is None:
        names = [str(n) for n in range(1, n_tokens + 1)]
    # T5 begins what it writes with its padding
    kept = [n for n, name in enumerate(names[:n_tokens]) if name != PADDING or not n]
    return kept, tuple(names[n] for n in kept)


def stages(shown: Picture) -> Iterator[tuple[int, int, Stage]]:
    """Iterate over all stages with their lane and their place in it."""
    for lane, one in enumerate(shown.lanes):
        for place, stage in enumerate(one.stages):
            yield lane, place, stage


def pooled_columns(
    values: npt.NDArray[np.float32], most: int
) -> tuple[npt.NDArray[np.float32], int]:
    """Return vectors of at most so many numbers, and of how many numbers each is the mean."""
    size = -(-values.shape[-1] // most)
    if size <= 1:
        return values, 1
    pad = np.pad(values, ((0, 0), (0, -values.shape[-1] % size)), constant_values=np.nan)
    return np.nanmean(pad.reshape(len(values), -1, size), axis=-1, dtype=np.float32), size

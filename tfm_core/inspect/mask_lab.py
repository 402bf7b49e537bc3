"""The mask lab: eight masks on a typed text, laid on real scores, followed to the output.

Each is also PyTorch code that can be copied, with what a mask means to each of PyTorch's modules.
The scores are those of seeded projections, or of one head of a run's own model before any mask.
torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.choices.config import Choice
from tfm_core.data.vocabulary import NONE, PAD, SPECIALS
from tfm_core.inspect.attention.trained import model_of_step
from tfm_core.probe.labels import kind_of, modules_by_kind
from tfm_core.probe.types import Bools, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError, words

if TYPE_CHECKING:
    from torch import Tensor


PAD_TOKEN = SPECIALS[PAD]
SEPARATOR = "|"
MAX_TOKENS = 48
MAX_LETTERS = 24
D_MODEL, D_HEAD = 32, 8  # of the seeded projections

_START = "import torch\n\n"
_KEEP = "keep = torch.tensor({keep})  # False = padding\n"
_CODE = {
    "none": "mask = torch.ones({q}, {k}, dtype=torch.bool)",
    "padding": _KEEP + "mask = keep[None, :].expand({q}, {k})  # keys: the last axis",
    "causal": "mask = torch.ones({q}, {k}, dtype=torch.bool).tril()",
    "combined": _KEEP + "causal = torch.ones({q}, {k}, dtype=torch.bool).tril()\n"
    "mask = keep[None, :] & causal",
    "cross": _KEEP + "mask = keep[None, :].expand({q}, {k})  # the target reads the source",
    "window": _KEEP + "positions = torch.arange({k})\n"
    "near = (positions[:, None] - positions[None, :]).abs() <= {window}\n"
    "mask = keep[None, :] & near",
    "prefix": _KEEP + "causal = torch.ones({q}, {k}, dtype=torch.bool).tril()\n"
    "is_prefix = torch.arange({k}) < {prefix}\n"
    "mask = keep[None, :] & (causal | is_prefix[None, :])",
    "packed": _KEEP + "segments = torch.tensor({segments})\n"
    "mask = keep[None, :] & (segments[:, None] == segments[None, :])",
}
MASKS = {name: Choice(**words(f"choices/masks/{name}")) for name in _CODE}

ADDITIVE = """\
# bool (True = may attend) -> additive, in the type of the scores
added = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
scores = scores + added

# additive -> bool
mask = added == 0
"""

HOUSE_SDPA = """\
import torch.nn.functional as F

# q: (B, H, Q, D), k and v: (B, H, K, D); bool: True = takes part
out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
"""

HOUSE_MHA = """\
from torch import nn

attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
# x: (B, T, d_model); bool here means the opposite: True = forbidden
out, weights = attention(x, x, x, attn_mask=~mask, key_padding_mask=~keep)
"""

CONVENTIONS = (  # where, what True means, its shape, and what a float mask is
    (N_("This app"), N_("may attend"), N_("broadcastable to (B, H, Q, K)"), N_("not used")),
    (
        N_("F.scaled_dot_product_attention(attn_mask=...)"),
        N_("may attend"),
        N_("broadcastable to (B, H, Q, K)"),
        N_("added to the scores"),
    ),
    (
        N_("nn.MultiheadAttention(attn_mask=...)"),
        N_("forbidden"),
        "(Q, K) or (B * H, Q, K)",
        N_("added to the scores"),
    ),
    (
        N_("nn.MultiheadAttention(key_padding_mask=...)"),
        N_("forbidden (padding)"),
        "(B, K)",
        N_("added to the scores"),
    ),
    (
        N_("nn.Transformer(src_mask=..., tgt_key_padding_mask=...)"),
        N_("forbidden"),
        "(T, T); (B, T) for padding",
        N_("added to the scores"),
    ),
    (N_("Hugging Face attention_mask"), N_("1 = may attend"), "(B, K)", N_("built internally")),
)
"""What a bool mask means in each place."""


@dataclass(frozen=True, slots=True, eq=False)
class Projected:
    """Tokens with what one head made of them: scores (Q, K) before any mask, value (K, D).

    origin: where the numbers come from, in words.
    """

    query: tuple[str, ...]
    key: tuple[str, ...]
    scores: Floats
    value: Floats
    origin: str


@dataclass(frozen=True, slots=True, eq=False)
class MaskedAttention:
    """The five steps of a masked attention: (Q, K) four times, output (Q, D)."""

    scores: Floats
    allowed: Bools
    masked: Floats
    weights: Floats
    output: Floats

    @property
    def blind(self) -> list[int]:
        """The queries that may attend to nothing."""
        return [int(i) for i in np.flatnonzero(~self.allowed.any(1))]


def parse_tokens(text: str) -> tuple[str, ...]:
    """Cut a sentence or a list into tokens at spaces and commas; ``|`` stands alone.

    Raises ValueError, in a sentence, where there is nothing, too much, or a monstrous word.
    """
    tokens = tuple(re.sub(r"\|", " | ", text).replace(",", " ").split())
    if not [token for token in tokens if token != SEPARATOR]:
        raise StudentError("Type at least one word.")
    long = [token for token in tokens if len(token) > MAX_LETTERS]
    if long:
        raise StudentError(
            "“{word}…” has {n} letters; the limit is {most_letters}.",
            word=long[0][:MAX_LETTERS],
            n=len(long[0]),
            most_letters=MAX_LETTERS,
        )
    if len(tokens) > MAX_TOKENS:
        raise StudentError(
            "Type at most {most_tokens} tokens, not {n_tokens}.",
            n_tokens=len(tokens),
            most_tokens=MAX_TOKENS,
        )
    return tokens


def segments_of(tokens: Iterable[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the tokens without separators, and the sequence that each belongs to, from 0."""
    kept: list[str] = []
    segments: list[int] = []
    number = 0
    for token in tokens:
        if token == SEPARATOR:
            number += bool(kept) and segments[-1] == number
        else:
            kept.append(token)
            segments.append(number)
    return tuple(kept), tuple(segments)


def build_mask(
    kind: str,
    query: Sequence[str],
    key: Sequence[str],
    *,
    window: int = 1,
    prefix: int = 1,
    segments: Sequence[int] = (),
) -> Bools:
    """Return the mask of a kind for these tokens: bool (Q, K), True = may attend.

    Padding is found by its token ``<pad>``. segments: for packed sequences, one number a token.
    Raises ValueError, in a sentence, for an unknown kind and for tokens that do not fit it.
    """
    import torch

    from tfm_core.layers import masks

    if kind not in MASKS:
        raise StudentError(
            "There is no mask {kind!r}; it must be one of {masks}.",
            kind=kind,
            masks=", ".join(MASKS),
        )
    if kind != "cross" and len(query) != len(key):
        raise StudentError(
            "{label} needs the same tokens as queries and keys.", label=MASKS[kind].label
        )
    if kind == "packed" and len(segments) != len(key):
        raise StudentError(
            "{n_key} tokens need {n_key} segments, not {n_segments}.",
            n_key=len(key),
            n_segments=len(segments),
        )
    length = len(key)
    ids = torch.tensor([[PAD if token == PAD_TOKEN else PAD + 1 for token in key]])
    padding = masks.padding_mask(ids, PAD)
    made: dict[str, Any] = {
        "none": lambda: torch.ones(length, length, dtype=torch.bool),
        "padding": lambda: padding,
        "causal": lambda: masks.causal_mask(length),
        "combined": lambda: padding & masks.causal_mask(length),
        "cross": lambda: padding,
        "window": lambda: padding & masks.window_mask(length, window),
        "prefix": lambda: padding & masks.prefix_mask(length, prefix),
        "packed": lambda: padding & masks.packed_mask(torch.tensor([list(segments)])),
    }
    mask: Tensor = made[kind]()
    shape = (len(query), len(key))
    return np.array(mask.expand(1, 1, *shape)[0, 0].numpy(), np.bool_)


def without_padding(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the tokens with another name for padding, so that a mask does not see it."""
    return tuple("pad" if token == PAD_TOKEN else token for token in tokens)


def masked_attention(projected: Projected, mask: Bools) -> MaskedAttention:
    """Follow the scores through a mask, by the layers' own functions.

    Raises ValueError when the mask is not (Q, K).
    """
    import torch

    from tfm_core.layers.attention import masked_softmax

    if mask.shape != projected.scores.shape:
        raise StudentError(
            "The mask is {shape}, but the scores are {scores}.",
            shape=mask.shape,
            scores=projected.scores.shape,
        )
    scores = torch.tensor(projected.scores, dtype=torch.float32)
    may = torch.tensor(mask)
    masked = scores.masked_fill(~may, torch.finfo(scores.dtype).min)
    weights = masked_softmax(masked, may)
    output = weights @ torch.tensor(projected.value, dtype=torch.float32)
    return MaskedAttention(scores.numpy(), mask, masked.numpy(), weights.numpy(), output.numpy())


def toggle_cells(mask: Bools, cells: Iterable[tuple[int, int]]) -> Bools:
    """Return the mask with some cells (query, key) turned over; those outside it are left out."""
    changed = mask.copy()
    for row, column in cells:
        if 0 <= row < mask.shape[0] and 0 <= column < mask.shape[1]:
            changed[row, column] = not changed[row, column]
    return changed


def seeded_projection(query: Sequence[str], key: Sequence[str], *, seed: int = 0) -> Projected:
    """Return scores of untrained projections: seeded embeddings plus sinusoidal positions.

    The same word has the same embedding everywhere, so its scores can be recognised.
    """
    import torch

    from tfm_core.layers.positions import sinusoidal

    rng = np.random.default_rng(seed)
    w_query, w_key, w_value = rng.normal(0, D_MODEL**-0.5, (3, D_MODEL, D_HEAD))
    waves = sinusoidal(max(len(query), len(key)), D_MODEL).numpy()

    def embed(tokens: Sequence[str]) -> Floats:
        words = [
            np.random.default_rng([seed, zlib.crc32(token.encode())]).normal(0, 1, D_MODEL)
            for token in tokens
        ]
        return np.array(np.stack(words) + waves[: len(tokens)])

    q, k = torch.tensor(embed(query) @ w_query), torch.tensor(embed(key) @ w_key)
    scores = (q @ k.mT / D_HEAD**0.5).float().numpy()
    value = (embed(key) @ w_value).astype(np.float32)
    return Projected(tuple(query), tuple(key), scores, value, N_("untrained random embeddings"))


def mask_code(
    kind: str,
    query: Sequence[str],
    key: Sequence[str],
    *,
    window: int = 1,
    prefix: int = 1,
    segments: Sequence[int] = (),
) -> str:
    """Return code that makes this very mask as bool (Q, K), True = may attend, in ``mask``."""
    return _START + _CODE[kind].format(
        q=len(query),
        k=len(key),
        keep=[token != PAD_TOKEN for token in key],
        window=window,
        prefix=prefix,
        segments=list(segments),
    )


def mask_literal(mask: Bools) -> str:
    """Return code that spells out a mask (Q, K) as 0 and 1: for one that was clicked together."""
    rows = ",\n".join(f"    [{', '.join(str(int(cell)) for cell in row)}]" for row in mask)
    return f"{_START}mask = torch.tensor([\n{rows},\n]).bool()  # True = may attend"


_CAUSAL = frozenset({"causal", "combined"})  # in a translator, the decoder's own masks
_At = tuple[int, int, int | None]  # layer and head from 0, and the step


def modules_for(run: Run, kind: str) -> list[str]:
    """Return the attention modules that a kind of mask is laid on, one a layer.

    Raises ValueError, in a sentence, where the model has none.
    """
    task = run.experiment.task
    if task.describes_pictures:
        raise StudentError("Its words describe a picture, which is missing here.")
    if task.picture_shape:
        raise StudentError("It reads pictures, which have no words to mask.")
    modules = modules_by_kind(run.experiment)
    if kind == "cross":
        if "cross" not in modules:
            raise StudentError("Its model has no cross-attention.")
        return modules["cross"]
    if reads_target(run, kind):
        return modules["decoder"]
    if list(modules) == ["cross"]:
        raise StudentError("Its model has only cross-attention.")
    return next(iter(modules.values()))


def reads_target(run: Run, kind: str) -> bool:
    """Return whether a kind of mask lies on what the run's decoder writes, not on the source."""
    experiment = run.experiment
    is_of_words = experiment.task.picture_shape is None
    return is_of_words and kind in _CAUSAL and "decoder" in modules_by_kind(experiment)


def task_words(run: Run, text: str, kind: str = "none") -> tuple[str, ...]:
    """Return a text as the run's task cuts it, ``|`` between sequences; a target at its spaces.

    Raises ValueError, in a sentence, for what the task does not know.
    """
    from tfm_core.data.tasks import text_task

    config = run.experiment.task
    if config.describes_pictures:
        raise StudentError("Its words describe a picture, which is missing here.")
    if config.picture_shape:
        raise StudentError("It reads pictures, which have no words to mask.")
    task = text_task(config)
    if reads_target(run, kind):
        target = parse_tokens(text)
        _check_known(target, (*task.tgt_vocabulary.tokens, SEPARATOR))
        return target
    parts = [task.tokenize(part) for part in text.split(SEPARATOR) if part.strip()]
    joined = [token for part in parts for token in (*part, SEPARATOR)][:-1]
    return parse_tokens(" ".join(joined)) if joined else task.tokenize("")


def run_projection(
    run: Run,
    kind: str,
    tokens: tuple[str, ...],
    other: tuple[str, ...],
    layer: int = 0,
    head: int = 0,
    *,
    step: int | None = None,
) -> Projected:
    """Return what the run's model makes of the tokens: its real projections, at a step.

    tokens: the source, the text of a language model, or the target where ``reads_target``, with
    ``<pad>`` where there is padding; other: for cross-attention what the decoder reads behind
    <bos>, for a decoder's self-attention the source that it translates. layer, head: from 0. step:
    None is that of the last checkpoint. Raises ValueError where the model cannot read them.
    """
    import torch

    from tfm_core.data.tasks import text_task

    module, at = modules_for(run, kind)[layer], (layer, head, step)
    config = run.experiment.task
    task = text_task(config)
    begin, target = task.tgt_vocabulary.specials.bos, other
    words = [token for token in tokens if token != PAD_TOKEN]
    if reads_target(run, kind):
        _check_known(words, task.tgt_vocabulary.tokens)
        if len(words) > config.max_tgt_len:
            raise StudentError("Its task goes up to {longest} tokens.", longest=config.max_tgt_len)
        src = torch.tensor([task.src_vocabulary.encode(other)])
        tgt_in = torch.tensor([[begin, *task.tgt_vocabulary.encode(tokens)]])
        read = (config.begin, *tokens)
        return _captured(run, module, at, (src, tgt_in), (read, read), 0)
    pad = task.src_vocabulary.specials.pad
    if len(words) < len(tokens):
        if pad == NONE:
            raise StudentError("Its model has no padding.")
        tokens = tuple(task.src_vocabulary.token(pad) if t == PAD_TOKEN else t for t in tokens)
    has_source = config.has_source
    _check_known(words, task.src_vocabulary.tokens)
    longest = config.max_src_len or config.max_tgt_len
    if len(words) > longest:
        raise StudentError("Its task goes up to {longest} tokens.", longest=longest)
    is_joined = run.experiment.model.family == "decoder-only" and has_source
    if is_joined and len(words) < len(tokens):
        raise StudentError("Its model has no padding between source and target.")
    if kind == "cross":
        _check_known(target, task.tgt_vocabulary.tokens)
    src = torch.tensor([task.src_vocabulary.encode(tokens)])
    written = task.tgt_vocabulary.encode(target) if kind == "cross" else ()
    tgt_in = torch.tensor([[begin, *written]])
    if not has_source:  # a language model: the words are what it writes, behind <bos>
        src, tgt_in = src[:, :0], torch.cat([tgt_in[:, :1], src], 1)
    query = (config.begin, *target) if kind == "cross" else tokens
    first = int(run.experiment.has_cls or not has_source)  # the mask lab shows the words alone
    return _captured(run, module, at, (src, tgt_in), (query, tokens), first)


def _captured(
    run: Run,
    module: str,
    at: _At,
    ids: tuple[Tensor, Tensor],
    tokens: tuple[tuple[str, ...], tuple[str, ...]],
    first: int,
) -> Projected:
    """Run the model on source and target ids; return one head's scores and values.

    tokens: of the queries and of the keys, which stand from place ``first`` on.
    """
    from tfm_core.probe.capture import capture

    (query, key), (layer, head, wanted_step) = tokens, at
    model, step = model_of_step(run, wanted_step)
    with capture(model, only={"scores", "value"}, modules={module}) as cache:
        model(*ids)
    scores = cache[f"{module}.scores"][0, head, first:, first:][: len(query), : len(key)]
    value = cache[f"{module}.value"][0, head, first:][: len(key)]
    origin = N_(
        "layer {layer}, head {head} of “{name}” at step {step:,} · {attention}",
        layer=layer + 1,
        head=head + 1,
        name=run.meta.name,
        step=step,
        attention=kind_of(run.experiment, module).label,
    )
    return Projected(query, key, scores.float().numpy(), value.float().numpy(), origin)


def true_target(run: Run, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return the true target of a source of the run's task, empty where there is none."""
    from tfm_core.data.tasks import text_task

    config = run.experiment.task
    task = text_task(config)
    words = [token for token in tokens if token != PAD_TOKEN]
    return tuple(task.solve(words) or ())


def _check_known(words: list[str] | tuple[str, ...], known: tuple[str, ...]) -> None:
    unknown = [word for word in words if word not in known]
    if unknown:
        raise StudentError("“{unknown}” is not a word of its task.", unknown=unknown[0])

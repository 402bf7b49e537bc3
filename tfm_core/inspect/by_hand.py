"""Attention by hand: every number between a few short vectors and the output, and learning from it.

Eq. 1 of Vaswani et al. 2017 on words of the user's, small enough to be computed on paper. The
numbers are those of the layer itself: ``tests`` hold them equal to what ``MultiHeadAttention``
records. Vectors are rows, so a projection is ``x @ W`` as in the paper; ``nn.Linear`` keeps the
transpose. torch is imported where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.inspect.syntax import source
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.layers.attention import MultiHeadAttention


MIN, MAX = 2, 6  # words, and numbers a word
MAX_LETTERS = 12
LARGEST = 10.0
FIRST_WORDS = ("I", "love", "AI")
MASKS = ("none", "causal", "padding")
PADDING = "<pad>"
MAX_STEPS = 60
LEARNED = Columns(
    step=Column(N_("gradient step")),
    loss=Column(N_("loss (nats)"), ".4f", {"rangemode": "tozero"}),
    value=Column(N_("target weight"), ".4f", {"range": (0, 1.05)}),
)


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """One attention, in the order of its computation; all float32, T words, D numbers a head.

    query, key, value: (T, D). products = query @ key.T: (T, T). scores = products / scale; scale is
    sqrt(D), or 1 where it is left out. allowed: bool (T, T). masked: the scores with the lowest
    number where the mask forbids. exponentials: e^(score - largest of the row), 0 where forbidden;
    totals: (T,) their sums. weights: (T, T). output = weights @ value: (T, D).
    """

    query: Floats
    key: Floats
    value: Floats
    products: Floats
    scale: float
    scores: Floats
    allowed: Bools
    masked: Floats
    exponentials: Floats
    totals: Floats
    weights: Floats
    output: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Matrices:
    """The learned matrices of attention, each (d_model, d_model): rows go in, columns come out."""

    query: Floats
    key: Floats
    value: Floats
    out: Floats


@dataclass(frozen=True, slots=True, eq=False)
class MultiHead:
    """Heads side by side: what each computed, their outputs joined, and mixed by ``out``.

    joined: (T, d_model), the heads' outputs one behind the other; output = joined @ out.
    """

    heads: tuple[Attended, ...]
    joined: Floats
    output: Floats


def attend(
    query: Floats, key: Floats, value: Floats, allowed: Bools, *, is_scaled: bool = True
) -> Attended:
    """Return attention with all that lies between; is_scaled: divide by sqrt(D).

    query, key, value: (T, D); allowed: bool (T, T), True = may attend. A query that may attend to
    nothing gets zeros. Raises ValueError where the mask does not fit.
    """
    import torch

    from tfm_core.layers.attention import attention_scores, masked_softmax

    if allowed.shape != (len(query), len(key)):
        raise StudentError(
            "The mask is {shape}, but there are {n_query} words.",
            shape=allowed.shape,
            n_query=len(query),
        )
    q, k, v = (torch.tensor(part, dtype=torch.float32) for part in (query, key, value))
    may = torch.tensor(allowed)
    products = q @ k.mT
    if is_scaled:
        scores, masked = attention_scores(q, k, may)
    else:
        scores, masked = products, products.masked_fill(~may, torch.finfo(q.dtype).min)
    weights = masked_softmax(masked, may)
    largest = masked.max(-1, keepdim=True).values
    exponentials = (masked - largest).exp().masked_fill(~may, 0.0)
    return Attended(
        query=_numbers(q),
        key=_numbers(k),
        value=_numbers(v),
        products=_numbers(products),
        scale=query.shape[1] ** 0.5 if is_scaled else 1.0,
        scores=_numbers(scores),
        allowed=allowed,
        masked=_numbers(masked),
        exponentials=_numbers(exponentials),
        totals=_numbers(exponentials.sum(-1)),
        weights=_numbers(weights),
        output=_numbers(weights @ v),
    )


def multi_head(
    vectors: Floats, matrices: Matrices, n_heads: int, allowed: Bools, *, is_scaled: bool = True
) -> MultiHead:
    """Project vectors (T, d_model), let every head attend with its own columns, join and mix.

    Raises ValueError when n_heads does not divide d_model.
    """
    import torch

    d_model = vectors.shape[1]
    if d_model % n_heads:
        raise StudentError(
            Paragraph(
                "by_hand/unequal-heads",
                n_heads=n_heads,
                d_model=d_model,
                fitting=" or ".join(str(n) for n in range(2, d_model + 1) if d_model % n == 0),
            )
        )
    x = torch.tensor(vectors, dtype=torch.float32)
    q, k, v = (
        _numbers(x @ torch.tensor(matrix, dtype=torch.float32))
        for matrix in (matrices.query, matrices.key, matrices.value)
    )
    width = d_model // n_heads
    cuts = [slice(head * width, (head + 1) * width) for head in range(n_heads)]
    heads = tuple(
        attend(q[:, cut], k[:, cut], v[:, cut], allowed, is_scaled=is_scaled) for cut in cuts
    )
    joined = np.concatenate([head.output for head in heads], axis=1)
    mixed = torch.tensor(joined) @ torch.tensor(matrices.out, dtype=torch.float32)
    return MultiHead(heads, joined, _numbers(mixed))


def layer(matrices: Matrices, n_heads: int) -> MultiHeadAttention:
    """Return the app's own layer with these matrices in it, without biases."""
    import torch

    from tfm_core.layers.attention import MultiHeadAttention

    attention = MultiHeadAttention(len(matrices.query), n_heads, bias=False)
    stacked = np.concatenate([m.T for m in (matrices.query, matrices.key, matrices.value)])
    with torch.no_grad():
        attention.in_projection.weight.copy_(torch.tensor(stacked))
        assert isinstance(attention.out_projection, torch.nn.Linear)
        attention.out_projection.weight.copy_(torch.tensor(matrices.out.T))
    return attention.eval()


def random_matrices(d_model: int, seed: int) -> Matrices:
    """Return random matrices (d_model, d_model) of a seed, with two digits, easy to copy."""
    rng = np.random.default_rng([seed, d_model])
    made = np.round(rng.normal(0, 1, (4, d_model, d_model)), 2).astype(np.float32)
    return Matrices(*made)


def one_hot(n_words: int, d_model: int) -> Floats:
    """Return (n_words, d_model): word i has its 1 at row i, from the start again at the end."""
    return np.eye(d_model, dtype=np.float32)[np.arange(n_words) % d_model]


SHARED = (0.75, 0.5)  # of its own direction, and of the other word's


def similar_pair(n_words: int) -> tuple[int, int]:
    """Return the two of the first vectors that are alike: the last word, and one before it."""
    return n_words - 1, min(1, n_words - 2)


def first_vectors(n_words: int, d_model: int) -> Floats:
    """Return (n_words, d_model): one-hot vectors, of which two words share part of theirs."""
    vectors = one_hot(n_words, d_model)
    pair = list(similar_pair(n_words))
    own, other = SHARED
    vectors[pair] = own * vectors[pair] + other * vectors[pair[::-1]]
    return vectors.round(4)


def random_vectors(n_words: int, d_model: int, seed: int) -> Floats:
    """Return (n_words, d_model) normal numbers of a seed, with two digits."""
    rng = np.random.default_rng([seed, n_words, d_model])
    return np.round(rng.normal(0, 1, (n_words, d_model)), 2).astype(np.float32)


def mask_of(kind: str, n_words: int, n_padding: int = 1) -> Bools:
    """Return a mask (T, T), True = may attend; for padding the last words are filler.

    Raises ValueError for an unknown kind.
    """
    import torch

    from tfm_core.layers import masks

    if kind not in MASKS:
        raise StudentError(
            "There is no mask {kind!r}; it must be one of {masks}.",
            kind=kind,
            masks=", ".join(MASKS),
        )
    made = torch.ones(n_words, n_words, dtype=torch.bool)
    if kind == "causal":
        made = masks.causal_mask(n_words)
    elif kind == "padding":
        ids = torch.ones(1, n_words, dtype=torch.long)
        ids[:, n_words - n_padding :] = 0
        made = masks.padding_mask(ids, 0)[0, 0].expand(n_words, n_words)
    return np.array(made.numpy(), np.bool_)


def pad_words(
    words: tuple[str, ...], vectors: Floats, n_padding: int
) -> tuple[tuple[str, ...], Floats]:
    """Return words and vectors with filler behind them, whose vectors are zeros."""
    zeros = np.zeros((n_padding, vectors.shape[1]), np.float32)
    return (*words, *[PADDING] * n_padding), np.concatenate([vectors, zeros])


def keep_vectors(words: Sequence[str], d_model: int, kept: Mapping[str, Sequence[float]]) -> Floats:
    """Return vectors (T, d_model): a word that had one keeps it, cut or filled up with zeros.

    kept: by the names of ``unique_names``.
    """
    vectors = first_vectors(len(words), d_model)
    for row, name in enumerate(unique_names(words)):
        if name in kept:
            known = list(kept[name])[:d_model]
            vectors[row] = [*known, *[0.0] * (d_model - len(known))]
    return vectors


def unique_names(words: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each word that no other has: the second “the” is ``the 2``."""
    return tuple(f"{word} {words[: i + 1].count(word)}" for i, word in enumerate(words))


def targets_of(pairs: list[tuple[int, int]], words: tuple[str, ...]) -> dict[int, int]:
    """Return query -> key. Raises ValueError, in a sentence, where a query has two keys."""
    targets: dict[int, int] = {}
    for query, key in pairs:
        if query in targets:
            raise StudentError(
                "“{word}” can't give all its weight to both “{one}” and “{other}”. Choose one.",
                word=words[query],
                one=words[targets[query]],
                other=words[key],
            )
        targets[query] = key
    return targets


def learn(
    vectors: Floats,
    start: Matrices,
    targets: Mapping[int, int],
    allowed: Bools,
    *,
    n_steps: int = 30,
    rate: float = 1.0,
) -> tuple[Floats, Floats, tuple[Matrices, ...]]:
    """Take ``n_steps`` steps of gradient descent on W_Q and W_K, one head.

    The loss is the surprise at the target attention, -log(weight), averaged over the target pairs:
    cross-entropy of a row of weights. W_V has no part in the weights, so nothing here changes it.
    vectors: (T, d_model). targets: query -> the key that it should attend to. allowed: bool (T, T).
    Returns the losses (S + 1,) in nats, the weights (S + 1, T, T) and S + 1 matrices; index 0 is
    before the first step. Raises ValueError, in a sentence, without a target, or for one that the
    mask forbids.
    """
    import torch

    from tfm_core.layers.attention import attention_weights

    if not targets:
        raise StudentError("Choose at least one pair of words.")
    for query, key in targets.items():
        if not allowed[query, key]:
            raise StudentError(
                "The mask keeps word {query} from attending to word {key}. Choose another pair or "
                "mask.",
                query=query + 1,
                key=key + 1,
            )
    x, may = torch.tensor(vectors, dtype=torch.float32), torch.tensor(allowed)
    w_query = torch.tensor(start.query, dtype=torch.float32, requires_grad=True)
    w_key = torch.tensor(start.key, dtype=torch.float32, requires_grad=True)
    queries, keys = torch.tensor(list(targets)), torch.tensor(list(targets.values()))
    losses, maps, matrices = [], [], []
    last = min(n_steps, MAX_STEPS)
    for step in range(last + 1):
        weights = attention_weights(x @ w_query, x @ w_key, may)
        loss = -weights[queries, keys].clamp_min(1e-12).log().mean()
        losses.append(float(loss.detach()))
        maps.append(weights.detach().numpy().copy())
        now = (w_query.detach().numpy().copy(), w_key.detach().numpy().copy())
        matrices.append(replace(start, query=now[0], key=now[1]))
        if step < last:
            slopes = torch.autograd.grad(loss, (w_query, w_key))
            with torch.no_grad():
                w_query -= rate * slopes[0]
                w_key -= rate * slopes[1]
    return np.array(losses, np.float32), np.stack(maps), tuple(matrices)


def _numbers(tensor: Tensor) -> Floats:
    return np.array(tensor.detach().numpy(), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class CodeForm:
    """One way to write it. output: (T, d_model). weights: (H, T, T), None where it has none.

    difference: the largest absolute difference of the output to that of the app's own layer; NaN
    where the form gives NaN.
    """

    name: str
    code: str
    output: Floats
    weights: Floats | None
    difference: float
    weight_difference: float | None


def list_of_heads(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Each head with its own small matrices, one after the other."""
    import torch

    outputs, maps = [], []
    for q, k, v in zip(*(w.chunk(n_heads, dim=1) for w in (w_q, w_k, w_v)), strict=True):
        query, key, value = x @ q, x @ k, x @ v  # (T, d_head)
        scores = query @ key.T / math.sqrt(q.size(1))  # (T, T)
        weights = scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)
        outputs.append(weights @ value)
        maps.append(weights)
    return torch.cat(outputs, dim=-1) @ w_o, torch.stack(maps)


def one_projection(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """All heads at once: one product, then a view cuts the last axis into heads."""
    import torch

    words, d_model = x.shape
    w_qkv = torch.cat([w_q, w_k, w_v], dim=1)  # (d_model, 3 * d_model)
    q, k, v = (
        part.view(words, n_heads, -1).transpose(0, 1)  # (T, d_model) -> (H, T, d_head)
        for part in (x @ w_qkv).chunk(3, dim=-1)
    )
    scores = q @ k.mT / math.sqrt(d_model // n_heads)  # (H, T, T)
    weights = scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)
    joined = (weights @ v).transpose(0, 1).reshape(words, d_model)
    return joined @ w_o, weights


def einsum(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The axes by letters, no transpose: n batch, q queries, k or l keys, h heads, d of a head."""
    import torch

    n, words, d_head = 1, len(x), x.size(1) // n_heads
    q, k, v = ((x @ w).view(n, words, n_heads, d_head) for w in (w_q, w_k, w_v))
    scores = torch.einsum("nqhd,nkhd->nhqk", q, k) / math.sqrt(d_head)
    weights = scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(~mask, 0)
    heads = torch.einsum("nhql,nlhd->nqhd", weights, v)  # (n, T, H, d_head)
    return heads.reshape(words, -1) @ w_o, weights[0]


def fused(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, None]:
    """The same with PyTorch's fused kernel, which never lays the weights out in memory."""
    from torch import nn

    q, k, v = (
        (x @ w).view(1, len(x), n_heads, -1).transpose(1, 2)  # (1, H, T, d_head)
        for w in (w_q, w_k, w_v)
    )
    heads = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return heads.transpose(1, 2).reshape(x.shape) @ w_o, None


def pytorch_module(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Copy the weights into nn.MultiheadAttention; its mask says True where it is forbidden."""
    import torch
    from torch import nn

    module = nn.MultiheadAttention(x.size(1), n_heads, bias=False, batch_first=True).eval()
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([w_q.T, w_k.T, w_v.T]))
        module.out_proj.weight.copy_(w_o.T)
        batch = x[None]  # (1, T, d_model)
        output, weights = module(batch, batch, batch, attn_mask=~mask, average_attn_weights=False)
    return output[0], weights[0]


FORMS: dict[str, Callable[..., tuple[Tensor, Tensor | None]]] = {
    "A list of small heads": list_of_heads,
    "One large projection": one_projection,
    "Two einsums": einsum,
    "One projection, fused kernel": fused,
    "nn.MultiheadAttention": pytorch_module,
}


def forms(
    vectors: Floats, matrices: Matrices, n_heads: int, allowed: Bools
) -> tuple[CodeForm, ...]:
    """Run every form on vectors (T, d_model); the first is the app's own layer, as it records.

    Raises ValueError when n_heads does not divide d_model.
    """
    import torch

    from tfm_core.probe.capture import capture

    own = layer(matrices, n_heads)
    x, mask = torch.tensor(vectors, dtype=torch.float32), torch.tensor(allowed)
    with capture(own) as cache:
        output = own(x[None], mask=mask)[0]
    weights = cache[".weights"][0]
    parts = [
        torch.tensor(m, dtype=torch.float32)
        for m in (matrices.query, matrices.key, matrices.value, matrices.out)
    ]
    own_parts = (type(own).forward, type(own).project, type(own)._heads, type(own).merge)
    lines = "".join(source(part) for part in own_parts)
    made = [CodeForm(N_("This app’s layer"), lines, output.numpy(), weights.numpy(), 0.0, 0.0)]
    for name, form in FORMS.items():
        with torch.no_grad():
            result, maps = form(x, *parts, n_heads, mask)
        made.append(
            CodeForm(
                name,
                source(form),
                result.numpy(),
                None if maps is None else maps.numpy(),
                float((result - output).abs().max()),
                None if maps is None else float((maps - weights).abs().max()),
            )
        )
    return tuple(made)


def agree(made: tuple[CodeForm, ...], tolerance: float = 1e-4) -> bool:
    """Return whether all forms give the same output to within a tolerance."""
    return bool(np.all([form.difference <= tolerance for form in made]))

"""A few real gradient steps on the query and key matrices, so that a word attends where it should.

The loss is the surprise at the target attention, -log(weight), averaged over the target pairs:
cross-entropy of a row of weights. The matrices go downhill by plain gradient descent. W_V has no
part in the weights, so nothing here changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tfm_core.inspect.by_hand.attention import Matrices
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_, StudentError

MAX_STEPS = 60
LEARNED = Columns(
    step=Column(N_("gradient step")),
    loss=Column(N_("loss (nats)"), ".4f", {"rangemode": "tozero"}),
    value=Column(N_("target weight"), ".4f", {"range": (0, 1.05)}),
)


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What became of the matrices; index 0 is before the first step.

    losses: (S + 1,) nats. weights: (S + 1, T, T). matrices: S + 1 of them.
    """

    losses: Floats
    weights: Floats
    matrices: tuple[Matrices, ...]


def targets_of(pairs: list[tuple[int, int]], words: tuple[str, ...]) -> dict[int, int]:
    """Return query -> key. Raises ValueError, in a sentence, where a query has two keys."""
    targets: dict[int, int] = {}
    for query, key in pairs:
        if query in targets:
            raise StudentError(
                "“{word}” can't give all its weight to both “{one}” and “{other}”: choose one.",
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
) -> Lesson:
    """Take ``n_steps`` steps of gradient descent on W_Q and W_K, one head.

    vectors: (T, d_model). targets: query -> the key that it should attend to. allowed: bool (T, T).
    Raises ValueError, in a sentence, without a target, or for one that the mask forbids.
    """
    import torch

    from tfm_core.layers.attention import attention_weights

    if not targets:
        raise StudentError("Choose at least one pair of words.")
    for query, key in targets.items():
        if not allowed[query, key]:
            raise StudentError(
                "The mask forbids word {query} to attend to word {key}: choose another pair or "
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
    return Lesson(np.array(losses, np.float32), np.stack(maps), tuple(matrices))

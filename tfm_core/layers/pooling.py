"""From the vectors of all tokens to one: their mean, or the one of a token put in front.

The token in front stands for no patch and no word; it gathers what is needed (Devlin et al. 2019,
section 3; Dosovitskiy et al. 2021, Eq. 4).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Pool = Callable[[Tensor, Tensor | None], Tensor]
"""From vectors (B, T, d_model) and bool (B, T), True where a token stands, to (B, 1, d_model).

``None`` says that there is no padding, as in pictures."""


def mean_of_tokens(x: Tensor, keep: Tensor | None) -> Tensor:
    """Return (B, 1, d_model): the mean of the vectors x (B, T, d_model) that are no padding.

    keep: (B, T), True where a token stands; None where that is everywhere. The mean of padding
    alone is zeros.
    """
    if keep is None:
        return x.mean(1, keepdim=True)
    share = keep / keep.sum(1, keepdim=True).clamp(min=1)
    return (share[:, None].to(x.dtype)) @ x


def first_token(x: Tensor, keep: Tensor | None) -> Tensor:
    """Return (B, 1, d_model): the first of the vectors x (B, T, d_model); keep is not read."""
    return x[:, :1]

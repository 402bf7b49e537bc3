"""Muon for hidden matrices, AdamW for all else, as one optimiser (Jordan et al. 2024).

``torch.optim.Muon`` makes one matrix orthogonal after the other, in bf16. Here all matrices with
the same smaller side share each product, in fp32, and the iteration runs on their Gram matrices:
for models of this size a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from tfm_core.choices.variants.training import COEFFICIENTS, ITERATIONS, RMS


class Muon(torch.optim.Optimizer):
    """Groups that are ``is_hidden`` move by Muon, the others by AdamW; both at the rate ``lr``.

    What is hidden are matrices: (rows, columns), or several of them in the last two axes.
    """

    def __init__(
        self,
        params: Iterable[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        fused: bool = True,
    ) -> None:
        """betas: of AdamW; the first is Muon's momentum too. fused: AdamW in one kernel."""
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "fused": fused, "is_hidden": False})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient. closure: none; the gradients are there."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights and group["is_hidden"]:
                self._muon(weights, group)
            elif weights:
                self._adamw(weights, group)

    def _muon(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        beta, rate = group["betas"][0], group["lr"]
        gradients = [_gradient(weight) for weight in weights]
        momenta = [self._memory(weight, "momentum_buffer")["momentum_buffer"] for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - beta)
        ahead = torch._foreach_lerp(gradients, momenta, beta)  # Nesterov's look ahead
        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1 - rate * group["weight_decay"])
        torch._foreach_add_(weights, orthogonal_updates(ahead), alpha=-rate)

    def _adamw(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        states = [self._memory(weight, "exp_avg", "exp_avg_sq") for weight in weights]
        for weight, state in zip(weights, states, strict=True):
            if "step" not in state:  # where fused AdamW wants it: beside the weight
                state["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
        adamw(
            weights,
            [_gradient(weight) for weight in weights],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=group["fused"],
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )

    def _memory(self, weight: Tensor, *names: str) -> dict[str, Tensor]:
        """Return the memory of a weight, zeros before its first step."""
        state: dict[str, Tensor] = self.state[weight]
        for name in names:
            if name not in state:
                state[name] = torch.zeros_like(weight)
        return state


def _gradient(weight: Tensor) -> Tensor:
    assert weight.grad is not None
    return weight.grad


def orthogonal_updates(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Return each matrix with its singular values near 1, times 0.2 * sqrt(its larger side).

    matrices: (rows, columns) each, or several in the last two axes. The factor gives every update
    the root mean square that AdamW's have (Liu et al. 2025, Eq. 4).
    """
    wide = [_wide(matrix) for matrix in matrices]  # (n, smaller, larger)
    updates: dict[int, Tensor] = {}
    for smaller in dict.fromkeys(matrix.size(1) for matrix in wide):
        by_width: dict[int, list[int]] = {}
        for number, matrix in enumerate(wide):
            if matrix.size(1) == smaller:
                by_width.setdefault(matrix.size(2), []).append(number)
        stacks = [torch.cat([wide[n] for n in numbers]) for numbers in by_width.values()]
        roots = inverse_roots(torch.cat([torch.bmm(stack, stack.mT) for stack in stacks]))
        of_stacks = torch.split(roots, [len(stack) for stack in stacks])
        for numbers, stack, root in zip(by_width.values(), stacks, of_stacks, strict=True):
            update = torch.bmm(root.mul_(RMS * stack.size(2) ** 0.5), stack)
            parts = torch.split(update, [len(wide[n]) for n in numbers])
            updates.update(zip(numbers, parts, strict=True))
    return [_in_shape(updates[number], matrix.shape) for number, matrix in enumerate(matrices)]


def inverse_roots(grams: Tensor) -> Tensor:
    """Return Q, near (X X^T)^(-1/2) of each X, from the X X^T (n, m, m) in ``grams``.

    An iteration of Newton-Schulz, X <- aX + b(X X^T)X + c(X X^T)^2 X, multiplies X from the left
    by a polynomial P of A = X X^T. All P commute, so Q is their product, and A becomes P A P.
    """
    squares = grams.diagonal(dim1=1, dim2=2).sum(1)[:, None, None]  # of Frobenius norms
    squares = squares.clamp(min=torch.finfo(grams.dtype).tiny)
    grams = grams / squares  # no singular value of X is above 1 now
    product = factors = _polynomial(grams)
    for _ in range(ITERATIONS - 1):
        grams = torch.bmm(torch.bmm(factors, grams), factors)
        factors = _polynomial(grams)
        product = torch.bmm(product, factors)
    return product * squares.rsqrt()


def _polynomial(grams: Tensor) -> Tensor:
    """Return a + b A + c A^2 of each A in ``grams`` (n, m, m)."""
    a, b, c = COEFFICIENTS
    polynomial = torch.baddbmm(grams, grams, grams, beta=b, alpha=c)
    polynomial.diagonal(dim1=1, dim2=2).add_(a)
    return polynomial


def _wide(matrix: Tensor) -> Tensor:
    """Return (n, smaller side, larger side)."""
    rows, columns = matrix.shape[-2:]
    matrices = matrix.reshape(-1, rows, columns)
    return matrices if rows <= columns else matrices.mT


def _in_shape(updates: Tensor, shape: torch.Size) -> Tensor:
    """Return updates (n, smaller, larger) in the shape of their matrix."""
    return (updates if shape[-2] <= shape[-1] else updates.mT).reshape(shape)

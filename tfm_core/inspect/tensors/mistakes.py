"""The famous errors, one press each: every one really raises, and its cause is explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfm_core.inspect.tensors.sight import Dtype
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """Settings that PyTorch refuses. texts: what is typed for the parameters."""

    title: str
    operation: str
    shape: str
    texts: Mapping[str, str] = field(default_factory=dict)
    second: str | None = None
    prepared: str = N_("as it is")
    dtype: Dtype = "float32"


MISTAKES: dict[str, RefusedCall] = {
    "view-transposed": RefusedCall(
        N_("View of a transposed tensor"), "view", "2, 3", {"sizes": "6"},
        prepared="transposed",
    ),
    "view-count": RefusedCall(N_("Wrong number of elements"), "view", "2, 3", {"sizes": "4, 2"}),
    "two-unknowns": RefusedCall(N_("-1 written twice"), "view", "2, 6", {"sizes": "-1, -1"}),
    "no-divisor": RefusedCall(
        N_("-1 that does not divide evenly"), "reshape", "2, 3",
        {"sizes": "-1, 4"}
    ),
    "no-axis": RefusedCall(N_("Missing axis"), "transpose", "2, 3", {"other": "2"}),
    "permute-twice": RefusedCall(
        N_("Permute names an axis twice"), "permute", "2, 3, 2", {"dims": "0, 0, 1"}
    ),
    "permute-few": RefusedCall(N_("Permute omits an axis"), "permute", "2, 3, 2", {"dims": "1, 0"}),
    "picture-without-channels": RefusedCall(
        N_("Picture without its channel axis"), "CHW to HWC", "4, 4"
    ),
    "expand": RefusedCall(
        N_("Expand of an axis that is not 1"), "expand", "2, 3",
        {"sizes": "4, 3"},
    ),
    "cat": RefusedCall(N_("Cat of unequal widths"), "cat", "2, 3",
                   second="2, 2"),
    "cat-axes": RefusedCall(N_("Cat of a matrix and a vector"), "cat", "2, 3",
    second="3"),
    "stack": RefusedCall(N_("Stack of unequal shapes"), "stack", "2, 3",
    second="2, 2"),
    "hstack": RefusedCall(N_("Hstack of unequal heights"), "hstack", "2, 3",
                      second="3, 3"),
    "matmul": RefusedCall(N_("Matmul without the transpose"), "matmul", "4, 3", second="4, 3"),
    "matmul-batch": RefusedCall(
        N_("Matmul of two batch sizes"), "matmul", "2, 2, 3", second="3, 3, 2"
    ),
    "matmul-types": RefusedCall(
        N_("Whole numbers times decimal ones"), "matmul", "2, 3",
        dtype="int64"
    ),
    "mm": RefusedCall(
        N_("mm on tensors of four axes"), "mm", "2, 2, 2, 3",
        second="2, 2, 3, 2",
    ),
    "mm-transpose": RefusedCall(N_("mm without the transpose"), "mm", "4, 3", second="4, 3"),
    "broadcast": RefusedCall(
        N_("Vector that does not fit the last axis"), "broadcast", "4, 3", second="4",
    ),
    "mean-whole": RefusedCall(N_("Mean of whole numbers"), "mean", "2, 3", dtype="int64"),
    "argmax-axis": RefusedCall(
        N_("Argmax along a missing axis"), "argmax", "2, 3",
        {"dim": "2"},
    ),
    "einsum-letters": RefusedCall(
        N_("Einsum: one letter too many"), "einsum", "2, 3",
        {"equation": "bqd,kd->qk"},
    ),
    "einsum-size": RefusedCall(
        N_("Einsum: one letter, two sizes"), "einsum", "2, 3",
        {"equation": "ij,jk->ik"}, second="4, 3",
    ),
    "einsum-output": RefusedCall(
        N_("Einsum: unknown letter in the output"), "einsum", "2, 3",
        {"equation": "qd,kd->qz"},
    ),
    "einsum-twice": RefusedCall(
        N_("Einsum: a letter twice in the output"), "einsum", "2, 3",
        {"equation": "qd,kd->qq"},
    ),
    "softmax-whole": RefusedCall(N_("Softmax of whole numbers"), "softmax", "2, 3", dtype="int64"),
    "softmax-axis": RefusedCall(
        N_("Softmax over axis 2 of a matrix"), "softmax", "2, 3", {"dim": "2"}
    ),
    "mask-shape": RefusedCall(
        N_("Mask of another shape"), "masked_fill", "2, 4, 4",
        {"mask": "3, 3"},
    ),
    "mask-whole": RefusedCall(N_("-inf into whole numbers"), "masked_fill", "4, 4", dtype="int64"),
    "triangle": RefusedCall(N_("Triangle of a vector"), "tril", "4"),
    "arange": RefusedCall(
        N_("A range in the wrong direction"), "arange", "1",
        {"start": "6", "end": "0"},
    ),
}  # fmt: skip

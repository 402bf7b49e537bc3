"""The famous errors, one press each: every one really raises, and its cause is explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfm_core.inspect.tensors.sight import Dtype
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True)
class Mistake:
    """Settings that PyTorch refuses.

    texts: what is typed for the parameters. cause: words of the explanation that name what is
    wrong.
    """

    title: str
    operation: str
    shape: str
    cause: str
    texts: Mapping[str, str] = field(default_factory=dict)
    second: str | None = None
    prepared: str = N_("as it is")
    dtype: Dtype = "float32"


MISTAKES: dict[str, Mistake] = {
    "view-transposed": Mistake(
        N_("View of a transposed tensor"), "view", "2, 3", "not contiguous", {"sizes": "6"},
        prepared="transposed",
    ),
    "view-count": Mistake(
        N_("Shape with another number of elements"), "view", "2, 3", "has room for 8",
        {"sizes": "4, 2"}
    ),
    "two-unknowns": Mistake(
        N_("-1 written twice"), "view", "2, 6", "stands there 2 times", {"sizes": "-1, -1"}
    ),
    "no-divisor": Mistake(
        N_("-1 that does not come out even"), "reshape", "2, 3", "does not divide 6",
        {"sizes": "-1, 4"}
    ),
    "no-axis": Mistake(
        N_("An axis that is not there"), "transpose", "2, 3", "There is no axis 2", {"other": "2"}
    ),
    "permute-twice": Mistake(
        N_("Permute names an axis twice"), "permute", "2, 3, 2", "listed twice", {"dims": "0, 0, 1"}
    ),
    "permute-few": Mistake(
        N_("Permute forgets an axis"), "permute", "2, 3, 2", "x has 3 axes, and 2", {"dims": "1, 0"}
    ),
    "picture-without-channels": Mistake(
        N_("Picture without its channel axis"), "CHW to HWC", "4, 4", "x has 2 axes, and 3"
    ),
    "expand": Mistake(
        N_("Expand of an axis that is not 1"), "expand", "2, 3", "Axis 0 of x has size 2",
        {"sizes": "4, 3"},
    ),
    "cat": Mistake(N_("Cat of unequal widths"), "cat", "2, 3", "axis 1 is 3 in x and 2 in b",
                   second="2, 2"),
    "cat-axes": Mistake(N_("Cat of a matrix and a vector"), "cat", "2, 3", "same number",
    second="3"),
    "stack": Mistake(N_("Stack of unequal shapes"), "stack", "2, 3", "equal tensors",
    second="2, 2"),
    "hstack": Mistake(N_("Hstack of unequal heights"), "hstack", "2, 3",
    "axis 0 is 2 in x and 3 in b",
                      second="3, 3"),
    "matmul": Mistake(
        N_("Matmul without the transpose"), "matmul", "4, 3", "inner sizes", second="4, 3"
    ),
    "matmul-batch": Mistake(
        N_("Matmul of two batch sizes"), "matmul", "2, 2, 3", "are a batch", second="3, 3, 2"
    ),
    "matmul-types": Mistake(
        N_("Whole numbers times decimal ones"), "matmul", "2, 3", "wants the same type",
        dtype="int64"
    ),
    "mm": Mistake(
        N_("mm on tensors of four axes"), "mm", "2, 2, 2, 3", "mm takes two matrices",
        second="2, 2, 3, 2",
    ),
    "mm-transpose": Mistake(
        N_("mm without the transpose"), "mm", "4, 3", "inner sizes", second="4, 3"
    ),
    "broadcast": Mistake(
        N_("A vector that does not fit the last axis"), "broadcast", "4, 3",
        "axis -1 is 3 in x and 4 in b", second="4",
    ),
    "mean-whole": Mistake(N_("Mean of whole numbers"), "mean", "2, 3", "x.float()", dtype="int64"),
    "argmax-axis": Mistake(
        N_("Argmax along an axis that is not there"), "argmax", "2, 3", "There is no axis 2",
        {"dim": "2"},
    ),
    "einsum-letters": Mistake(
        N_("Einsum: a letter too many"), "einsum", "2, 3", "one letter an axis",
        {"equation": "bqd,kd->qk"},
    ),
    "einsum-size": Mistake(
        N_("Einsum: one letter, two sizes"), "einsum", "2, 3", "stands for one size",
        {"equation": "ij,jk->ik"}, second="4, 3",
    ),
    "einsum-output": Mistake(
        N_("Einsum: unknown letter in the output"), "einsum", "2, 3", "asks for z",
        {"equation": "qd,kd->qz"},
    ),
    "einsum-twice": Mistake(
        N_("Einsum: a letter twice in the output"), "einsum", "2, 3", "stands twice in the output",
        {"equation": "qd,kd->qq"},
    ),
    "softmax-whole": Mistake(
        N_("Softmax of whole numbers"), "softmax", "2, 3", "x.float()", dtype="int64"
    ),
    "softmax-axis": Mistake(
        N_("Softmax over axis 2 of a matrix"), "softmax", "2, 3", "There is no axis 2", {"dim": "2"}
    ),
    "mask-shape": Mistake(
        N_("Mask of another shape"), "masked_fill", "2, 4, 4", "compared from the last axis",
        {"mask": "3, 3"},
    ),
    "mask-whole": Mistake(
        N_("-inf into whole numbers"), "masked_fill", "4, 4", "have no -inf", dtype="int64"
    ),
    "triangle": Mistake(N_("Triangle of a vector"), "tril", "4", "rows and columns"),
    "arange": Mistake(
        N_("A range in the wrong direction"), "arange", "1", "signs do not fit",
        {"start": "6", "end": "0"},
    ),
}  # fmt: skip

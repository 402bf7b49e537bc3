"""The operations that the models are made of: what they take, and the code that is shown and run.

``code`` gets the parameters as they were read. torch is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import Tensor

Values = Mapping[str, Any]
Kind = Literal["moves", "fills", "places", "computes", "makes"]
CAUSAL, PADDING, LARGE = "future", N_("last column"), N_("larger than 2")


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of an operation. kind: how its text is read."""

    name: str
    label: str
    help: str
    kind: Literal["int", "ints", "number", "equation", "shape", "choice"]
    default: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorOperation:
    """One operation.

    kind: "moves" elements; "fills" some with new ones; "places", which changes each where it is;
    "computes" new ones from many; "makes" a tensor from nothing.
    shape: of the first input at the start; second: of the second, None without one.
    where: where the app's models use it; step: name of the walk's, None where none shows it.
    numbers: the content of x at the start, empty for 0, 1, 2 …
    """

    name: str
    help: str
    kind: Kind
    shape: str
    parameters: tuple[Argument, ...]
    code: Callable[[Values], str]
    where: str
    step: str | None = None
    second: str | None = None
    numbers: str = ""

    def run(self, inputs: Sequence[Tensor], values: Values) -> dict[str, Any]:
        """Run the code on ``x`` and ``b``; return all names that it made, ``y`` the result."""
        import torch

        code = self.code(values)
        if "torchvision" in code:  # a torch without CUDA needs its operators declared first
            import_module("tfm_core.data.torchvision_import")
        names: dict[str, Any] = {"torch": torch, **dict(zip("xb", inputs, strict=False))}
        with torch.random.fork_rng(devices=[]):
            exec(code, names)  # of our templates and of parsed numbers
        return names


def _dim(label: str, default: str, name: str = "dim") -> Argument:
    return Argument(name, label, N_("From 0; -1 is the last axis."), "int", default)


def _sizes(default: str, help: str = N_("-1 is inferred.")) -> Argument:
    return Argument("sizes", N_("New shape"), help, "ints", default)


def listed(numbers: tuple[int, ...]) -> str:
    """Return numbers as arguments: ``2, 3``."""
    return ", ".join(map(str, numbers))


def tupled(numbers: tuple[int, ...]) -> str:
    """Return numbers as Python writes a tuple: ``(2,)``."""
    return f"({listed(numbers)}{',' if len(numbers) == 1 else ''})"


def _masked_code(v: Values) -> str:
    size = tupled(v["mask"])
    mask = {
        CAUSAL: f"mask = torch.ones({size}, dtype=torch.bool).triu(1)",
        PADDING: f"mask = torch.zeros({size}, dtype=torch.bool)\nmask[..., -1] = True",
        LARGE: "mask = x > 2",
    }[v["which"]]
    value = v["value"]
    text = f'float("{value}")' if abs(value) == float("inf") else f"{value:g}"
    return f"{mask}\ny = x.masked_fill(mask, {text})"


def _seeded_code(v: Values, name: str, *bounds: int) -> str:
    arguments = ", ".join([*map(str, bounds), tupled(v["sizes"])])
    return (
        f"generator = torch.Generator().manual_seed({v['seed']})\n"
        f"y = torch.{name}({arguments}, generator=generator)"
    )


_MADE = Argument("sizes", N_("Shape"), N_("Up to 64 elements."), "shape", "2, 4")
_SEED = Argument("seed", N_("Seed"), N_("The same seed gives the same numbers."), "int", "0")
_DIAGONAL = _dim(N_("Diagonal"), "0", "diagonal")

_SHAPES = (
    TensorOperation(
        "view", N_("The same memory in another shape. Never copies, so it can fail."),
        "moves", "2, 6", (_sizes("2, 2, 3"),),
        lambda v: f"y = x.view({listed(v['sizes'])})",
        N_("Split heads: d_model becomes heads × d_head."), "split",
    ),
    TensorOperation(
        "reshape", N_("A view where possible, else a copy."),
        "moves", "3, 4", (_sizes("2, 6"),),
        lambda v: f"y = x.reshape({listed(v['sizes'])})",
        N_("Merge heads: a copy after the transpose."), "merge",
    ),
    TensorOperation(
        "unsqueeze", N_("Adds an axis of size 1."),
        "moves", "2, 3", (_dim(N_("New axis at"), "1"),),
        lambda v: f"y = x.unsqueeze({v['dim']})",
        N_("Masks: (B, K) becomes (B, 1, 1, K), for all heads and queries."), "masks",
    ),
    TensorOperation(
        "squeeze", N_("Removes an axis of size 1; ignores a larger one silently."),
        "moves", "2, 1, 3", (_dim(N_("Axis"), "1"),),
        lambda v: f"y = x.squeeze({v['dim']})",
        N_("Take the example out of a batch of one."),
    ),
    TensorOperation(
        "expand",
        N_("Repeats an axis of size 1 with stride 0: no copy."),
        "moves", "1, 4", (_sizes("3, 4", N_("-1 keeps an axis.")),),
        lambda v: f"y = x.expand({listed(v['sizes'])})",
        N_("The CLS vector, for every picture of a batch."),
    ),
)  # fmt: skip
_ORDERS = (
    TensorOperation(
        "transpose", N_("Swaps two axes by their strides; no data moves."),
        "moves", "2, 3", (_dim(N_("First axis"), "0", "first"), _dim(N_("Second axis"), "1",
        "other")),
        lambda v: f"y = x.transpose({v['first']}, {v['other']})",
        N_("Split heads: (B, T, H, D) to (B, H, T, D); Kᵀ in QKᵀ."), "split",
    ),
    TensorOperation(
        "permute", N_("Reorders all axes by their strides."),
        "moves", "2, 3, 2",
        (Argument("dims", N_("New order"), N_("Each axis once."), "ints", "1, 0, 2"),),
        lambda v: f"y = x.permute({listed(v['dims'])})",
        N_("Patches: brings the pixels of a patch together."),
    ),
    TensorOperation(
        "contiguous", N_("Copies the elements into row-major order, if needed."),
        "moves", "2, 3", (), lambda v: "y = x.contiguous()",
        N_("Before a view after a transpose; reshape does both."), "merge",
    ),
    TensorOperation(
        "CHW to HWC", N_("PyTorch keeps channels first, image files last."),
        "moves", "3, 2, 3", (),
        lambda v: "y = x.permute(1, 2, 0)  # C, Y, X -> Y, X, C",
        N_("Pictures: (1, 28, 28) in the model, (28, 28, 1) on screen."),
    ),
)  # fmt: skip
_JOINS = (
    TensorOperation(
        "cat", N_("Joins along an existing axis; other sizes must agree."),
        "moves", "2, 3", (_dim(N_("Axis"), "0"),),
        lambda v: f"y = torch.cat([x, b], dim={v['dim']})",
        N_("CLS in front of the patches."),
        second="2, 3",
    ),
    TensorOperation(
        "stack", N_("Joins along a new axis; all sizes must agree."),
        "moves", "2, 3", (_dim(N_("New axis at"), "0"),),
        lambda v: f"y = torch.stack([x, b], dim={v['dim']})",
        N_("Sine and cosine of every position."),
        second="2, 3",
    ),
    TensorOperation(
        "hstack", N_("cat along axis 1 (axis 0 for vectors)."),
        "moves", "2, 3", (), lambda v: "y = torch.hstack([x, b])",
        N_("A list of heads side by side."),
        second="2, 2",
    ),
)  # fmt: skip
_PRODUCTS = (
    TensorOperation(
        "matmul", N_("Rows times columns; leading axes are a batch."),
        "computes", "2, 3", (), lambda v: "y = x @ b",
        N_("Everywhere: projections, QKᵀ, weights × V."), "scores", "3, 2",
    ),
    TensorOperation(
        "mm", N_("Two matrices only; on four axes it fails where @ works."),
        "computes", "2, 3", (),
        lambda v: "y = torch.mm(x, b)",
        N_("Nowhere: attention has four axes, (B, H, T, D), and uses @."),
        second="3, 2",
    ),
    TensorOperation(
        "einsum", N_("Products by letters; those not in the output are summed."),
        "computes", "2, 3",
        (Argument("equation", N_("Equation"), N_("Such as ij,jk->ik."), "equation", "qd,kd->qk"),),
        lambda v: f'y = torch.einsum("{v["equation"]}", '
        f"x{', b' if ',' in v['equation'] else ''})",
        N_("QKᵀ of all heads: bqhd,bkhd->bhqk."),
        second="4, 3",
    ),
    TensorOperation(
        "broadcast", N_("Element by element; an axis of size 1, or none, is repeated."),
        "computes", "4, 3",
        (Argument("sign", N_("Sign"), "", "choice", "+", ("+", "*")),),
        lambda v: f"y = x {v['sign']} b",
        N_("A bias (D,) on tokens, positions (T, D) on a batch."),
        second="3",
    ),
    TensorOperation(
        "softmax", N_("Exponentials divided by their sum along an axis."),
        "places", "3, 3", (_dim(N_("Axis that sums to 1"), "-1"),),
        lambda v: f"y = x.softmax({v['dim']})",
        N_("Attention weights, over the keys (last axis)."), "softmax",
    ),
)  # fmt: skip
_REDUCTIONS = (
    TensorOperation(
        "mean", N_("The mean along an axis, which disappears unless keepdim."),
        "computes", "2, 3",
        (
            _dim(N_("Axis to average"), "-1"),
            Argument("keepdim", "keepdim", N_("True keeps the axis, so x - y fits."),
            "choice", "False", ("False", "True")),
        ),
        lambda v: f"y = x.mean({v['dim']}{', keepdim=True' if v['keepdim'] == 'True' else ''})",
        N_("LayerNorm, over d_model; mean pooling, over tokens."),
        numbers="2, 7, 1, 3, 0, 6",
    ),
    TensorOperation(
        "argmax", N_("The index of the largest number along an axis."),
        "computes", "2, 3", (_dim(N_("Axis to search"), "-1"),),
        lambda v: f"y = x.argmax({v['dim']})",
        N_("The word of greedy decoding, the digit of a classifier."),
        numbers="2, 7, 1, 3, 0, 6",
    ),
)  # fmt: skip
_MASKS = (
    TensorOperation(
        "masked_fill", N_("Writes a value where the mask is True."),
        "fills", "4, 4",
        (
            Argument("which", N_("Mask is True at"), "", "choice", CAUSAL, (CAUSAL, PADDING,
            LARGE)),
            Argument("mask", N_("Shape of the mask"), N_("Must fit x; 1 stretches."), "shape",
            "4, 4"),
            Argument("value", N_("Value"), N_("-inf is usual before a softmax."), "number",
            "-inf"),
        ),
        _masked_code,
        N_("Scores of keys that a query must not read."), "masking",
    ),
    TensorOperation(
        "tril", N_("Keeps the lower triangle: the past."),
        "fills", "4, 4", (_DIAGONAL,),
        lambda v: f"y = x.tril({v['diagonal']})", N_("The causal mask."), "masks",
    ),
    TensorOperation(
        "triu", N_("Keeps the upper triangle; with diagonal 1: the future."),
        "fills", "4, 4", (_dim(N_("Diagonal"), "1", "diagonal"),),
        lambda v: f"y = x.triu({v['diagonal']})",
        N_("The causal mask of nn.Transformer, where True forbids."),
    ),
)  # fmt: skip
_TYPES = ("int64", "float16", "bool", "float32")
_MOVES = (
    TensorOperation(
        "to", N_("The same numbers in another type or on another device."),
        "places", "2, 3",
        (
            Argument("type", N_("New type"), N_("int64 drops decimals; bool is False for 0."),
            "choice", "int64", _TYPES),
            Argument("device", N_("Device"), N_("Tensors in one operation must share a device."),
            "choice", "cpu", ("cpu", "cuda", "mps")),
        ),
        lambda v: f'y = x.to("{v["device"]}", torch.{v["type"]})',
        N_("Batches to the device; uint8 pixels to float32."),
        numbers="0, 0.5, 1.9, -1.9, 2, -3",
    ),
    TensorOperation(
        "ToTensor", N_("Pixels from 0 to 255, channels last, become 0 to 1, channels first."),
        "computes", "2, 2, 3", (),
        lambda v: "from torchvision import transforms\n\n"
        "picture = x.byte().numpy()  # (Y, X, C), as in a file\n"
        "y = transforms.ToTensor()(picture)",
        N_("Pictures of digits: (28, 28) from 0 to 255 become (1, 28, 28) from 0 to 1."),
        numbers="255, 0, 51, 204, 102, 153, 0, 255, 25, 50, 75, 100",
    ),
    TensorOperation(
        "assert", N_("Python’s own check: the program stops unless the shape is this one."),
        "moves", "2, 3", (Argument("sizes", N_("Expected shape"), "", "shape", "2, 3"),),
        lambda v: f'assert x.shape == {tupled(v["sizes"])}, f"x is {{tuple(x.shape)}}"\ny = x',
        N_("Before the heads are split: d_model must be divisible by n_heads."),
    ),
    TensorOperation(
        "numel", N_("The number of elements: the product of the sizes."),
        "computes", "2, 3", (),
        lambda v: "y = torch.tensor(x.numel())",
        N_("Parameters are counted so: sum(p.numel() for p in model.parameters())."),
    ),
    TensorOperation(
        "Sequential", N_("Runs layers one after another; here Linear, ReLU, Linear."),
        "computes", "2, 3", (_SEED,),
        lambda v: f"from torch import nn\n\ntorch.manual_seed({v['seed']})\n"
        "layers = nn.Linear(x.size(-1), 4), nn.ReLU(), nn.Linear(4, 2)\n"
        "y = nn.Sequential(*layers)(x).detach()",
        N_("The feed-forward layer: the same layers for each token."),
    ),
)  # fmt: skip
_LISTS = ("[1, 2, 3]", "[1, 2.5, 3]", "[True, False]", "[[1, 2, 3], [4, 5, 6]]")
_MAKERS = (
    TensorOperation(
        "arange", N_("Whole numbers from start to before end."),
        "makes", "1",
        (
            _dim(N_("Start"), "0", "start"), _dim(N_("End"), "6", "end"), _dim(N_("Step"), "1",
            "step"),
        ),
        lambda v: f"y = torch.arange({v['start']}, {v['end']}, {v['step']})",
        N_("Positions of the tokens."),
    ),
    TensorOperation(
        "zeros", N_("All zeros."), "makes", "1", (_MADE,),
        lambda v: f"y = torch.zeros({tupled(v['sizes'])})",
        N_("Biases at the start of training."),
    ),
    TensorOperation(
        "ones", N_("All ones."), "makes", "1", (_MADE,),
        lambda v: f"y = torch.ones({tupled(v['sizes'])})",
        N_("The scale of a LayerNorm at the start; a mask, before tril."),
    ),
    TensorOperation(
        "tensor", N_("Copies a list; its numbers decide the type."), "makes", "1",
        (Argument("list", N_("List"), "", "choice", "[1, 2, 3]", _LISTS),),
        lambda v: f"y = torch.tensor({v['list']})",
        N_("Ids of tokens and classes, whole numbers: int64."),
    ),
    TensorOperation(
        "randint", N_("Random whole numbers from low to before high."), "makes", "1",
        (_dim(N_("Low"), "0", "low"), _dim(N_("High"), "10", "high"), _MADE, _SEED),
        lambda v: _seeded_code(v, "randint", v["low"], v["high"]),
        N_("Ids to try a model with, such as (2, 10) of 10,000 words."),
    ),
    TensorOperation(
        "rand", N_("Uniform from 0 to 1."), "makes", "1",
        (_MADE, _SEED), lambda v: _seeded_code(v, "rand"),
        N_("Dropout zeroes what draws less than the rate."),
    ),
    TensorOperation(
        "randn", N_("Normal with mean 0 and standard deviation 1."), "makes", "1",
        (_MADE, _SEED), lambda v: _seeded_code(v, "randn"),
        N_("Initial embeddings; rand would make them all positive."),
    ),
)  # fmt: skip


OPERATIONS: dict[str, TensorOperation] = {
    operation.name: operation
    for group in (
        _SHAPES,
        _ORDERS,
        _JOINS,
        _PRODUCTS,
        _REDUCTIONS,
        _MASKS,
        _MOVES,
        _MAKERS,
    )
    for operation in group
}

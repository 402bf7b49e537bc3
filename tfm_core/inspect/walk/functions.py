"""The functions of a step, each run on a small example: what goes in, the call, what comes out.

Which ones a step uses is read from its code, so a step cannot show one that it does not use.
"""

from __future__ import annotations

import ast
import re
from functools import cache

from tfm_core.choices.variants.activations import ACTIVATIONS, Activation
from tfm_core.choices.variants.norms import NORMS, Norm
from tfm_core.choices.variants.record import Example, Registry
from tfm_core.inspect.syntax import statements
from tfm_core.inspect.walk.steps import WalkStep
from tfm_core.sentences import N_, Paragraph


def _of(variants: Registry[Norm] | Registry[Activation]) -> tuple[Example, ...]:
    """Return the calls that variants bring along, each once."""
    return tuple(dict.fromkeys(one.example for one in variants.values() if one.example))


FUNCTIONS: tuple[Example, ...] = (
    Example(
        "torch.tensor", r"torch\.tensor\(",
        N_("Makes a tensor from lists of equal length."),
        ("rows = [[5, 8, 9], [7]]", "torch.tensor([row + [0] * (3 - len(row)) for row in rows])"),
    ),
    Example(
        "//", r" // ", N_("Integer division; % is the remainder, here 0."),
        ("30 // 5, 30 % 5", "30 // 4, 30 % 4"),
    ),
    Example(
        "view", r"\.view\(",
        N_("The same numbers in another shape; -1 is inferred."),
        ("x = torch.arange(6)", "x.view(2, 3)", "x.view(3, -1).shape"),
    ),
    Example(
        "patchify", r"\bpatchify\(", N_("Cut rows and columns, group the patches, flatten."),
        (
            "image = torch.arange(16).view(1, 4, 4)  # (C, Y, X), patches of 2 x 2",
            "cut = image.view(1, 2, 2, 2, 2)  # C, rows, y, columns, x",
            "cut.permute(1, 3, 0, 2, 4).reshape(4, 4)  # a patch in each row",
        ),
    ),
    Example(
        "[:, None]", r"\[:, None",
        N_("Adds an axis of size 1, like unsqueeze."),
        (
            "keep = torch.tensor([[True, True, False]])",
            "keep[:, None, None, :].shape",
            "keep.unsqueeze(1).unsqueeze(2).shape",
        ),
    ),
    Example(
        "tril", r"\.tril\(", N_("Keeps the lower triangle."),
        ("torch.ones(3, 3, dtype=torch.bool).tril()",),
    ),
    Example(
        "&", r" & ", N_("True where both are; axes of size 1 are broadcast."),
        (
            "keep = torch.tensor([[True, True, False]])",
            "keep & torch.ones(3, 3, dtype=torch.bool).tril()",
        ),
    ),
    Example(
        "nn.Embedding", r"\btable\(|_embedding\(",
        N_("Looks up a row of its table for each id."),
        (
            "table = nn.Embedding(4, 2)  # 4 tokens, 2 numbers each",
            "_ = table.weight.data.copy_(torch.arange(8.0).view(4, 2))",
            "table(torch.tensor([3, 0, 3])).detach()",
        ),
    ),
    Example(
        "torch.arange", r"torch\.arange\(", N_("Counts from 0."),
        ("torch.arange(4)", "torch.arange(4).expand(2, 4)  # for two sentences"),
    ),
    Example(
        "F.embedding", r"F\.embedding\(",
        N_("Looks up rows of a given table."),
        ("table = torch.tensor([[0.1], [0.3], [0.5]])",
         "F.embedding(torch.arange(2), table)"),
    ),
    Example(
        "+", r"\+ rows|\+ bias|\bx \+ |placed \+ segment",
        N_("Adds number by number; a missing axis is broadcast."),
        (
            "embedded = torch.zeros(2, 3, 2)  # 2 sentences of 3 tokens",
            "rows = torch.tensor([[0., 1.], [2., 3.], [4., 5.]])",
            "(embedded + rows)[1]",
        ),
    ),
    Example(
        "-, /", r"/ 255 - mean\) / std",
        N_("Number by number; mean and deviation are broadcast over pixels."),
        ("pixels = torch.tensor([[[0., 51., 255.]]])", "(pixels / 255 - 0.13) / 0.31"),
    ),
    Example(
        "nn.Linear",
        r"projection\(|\bff\.|\brouter\(|\bhead\(|\boutput\(|\bdense\(|\bbridge\(|\breadout\(",
        N_("A learned matrix and a bias on the last axis: x @ W.mT + b."),
        (
            "layer = nn.Linear(2, 3)",
            "_ = layer.weight.data.copy_(torch.tensor([[1., 0.], [0., 1.], [1., 1.]]))",
            "_ = layer.bias.data.copy_(torch.tensor([0., 0., 10.]))",
            "layer(torch.tensor([[2., 3.]])).detach()",
        ),
    ),
    Example(
        "unflatten", r"\.unflatten\(",
        N_("Splits an axis; flatten joins it again."),
        (
            "x = torch.arange(6).view(1, 6)",
            "x.unflatten(-1, (3, 2))",
            "x.unflatten(-1, (3, 2)).flatten(-2)",
        ),
    ),
    Example(
        "torch.einsum", r"einsum\(\"bthd,phed->pbthe\"",
        N_("One product per head (h) and per query, key and value (p)."),
        (
            "slices = torch.arange(4.).view(1, 1, 2, 2)  # b t h d",
            "matrices = torch.ones(3, 2, 2, 2)  # p h e d",
            'torch.einsum("bthd,phed->pbthe", slices, matrices).shape',
        ),
    ),
    Example(
        "chunk", r"\.chunk\(", N_("Cuts an axis into equal pieces."),
        ("x = torch.arange(6).view(1, 6)", "q, k, v = x.chunk(3, -1)", "k"),
    ),
    Example(
        "transpose", r"\.transpose\(", N_("Swaps two axes without moving data."),
        ("x = torch.arange(6).view(2, 3)", "x.transpose(0, 1)", "x.transpose(0, 1).shape"),
    ),
    Example(
        "@, .mT", r"@ keys\.mT",
        N_("Matrix product over the last two axes; .mT swaps them."),
        (
            "queries = torch.tensor([[1., 0.], [1., 1.]])",
            "keys = torch.tensor([[2., 0.], [0., 3.]])",
            "queries @ keys.mT",
        ),
    ),
    Example(
        "torch.einsum", r"@ keys\.mT",
        N_("The same from (N, length, heads, d_head), without a transpose."),
        (
            "queries = torch.arange(12.).view(1, 3, 2, 2)  # n q h d",
            "keys = torch.ones(1, 3, 2, 2)  # n k h d",
            'scores = torch.einsum("nqhd,nkhd->nhqk", queries, keys)',
            "scores.shape, scores[0, 0, :, 0]",
        ),
    ),
    Example(
        "math.sqrt", r"math\.sqrt\(", N_("Square root of a number, not of a tensor."),
        ("math.sqrt(9)",),
    ),
    Example(
        "masked_fill", r"\.masked_fill\(",
        N_("Writes a number where the mask is True; ~ inverts a mask."),
        (
            "scores = torch.tensor([[1., 2., 3.]])",
            "mask = torch.tensor([[True, True, False]])",
            "scores.masked_fill(~mask, -1e20)",
        ),
    ),
    Example(
        "torch.finfo", r"torch\.finfo\(", N_("The limits of a type; min is the lowest number."),
        ("torch.finfo(torch.float32).min", "torch.finfo(torch.float16).min"),
    ),
    Example(
        "softmax", r"\.softmax\(",
        N_("exp of each number, divided by their sum."),
        ("torch.tensor([[1., 2., 3.], [1., 1., -1e20]]).softmax(-1)",),
    ),
    Example(
        "@", r"weights\)? @ |share\[:, None\] @",
        N_("Each row of weights sums the values."),
        (
            "weights = torch.tensor([[0.5, 0.5, 0.0]])",
            "values = torch.tensor([[2., 0.], [4., 8.], [9., 9.]])",
            "weights @ values",
        ),
    ),
    Example(
        "torch.einsum", r"weights\)? @ values",
        N_("The same; heads stay beside tokens, ready to merge."),
        (
            "weights = torch.full((1, 2, 3, 4), 0.25)  # n h q l",
            "values = torch.arange(16.).view(1, 4, 2, 2)  # n l h d",
            'heads = torch.einsum("nhql,nlhd->nqhd", weights, values)',
            "heads.shape, heads[0, 0]",
        ),
    ),
    Example(
        "reshape", r"\.reshape\(",
        N_("Like view, but copies if memory is out of order."),
        (
            "x = torch.arange(6).view(2, 3).transpose(0, 1)",
            "x.reshape(6)",
            "x.contiguous().view(6)  # the same in two steps",
        ),
    ),
    *_of(NORMS),
    Example(
        "nn.Dropout", r"\bdropout\(|\.dropout\(",
        Paragraph("walk_questions/dropout"
        ),
        (
            "_ = torch.manual_seed(0)",
            "dropout = nn.Dropout(0.5)",
            "dropout(torch.ones(1, 8))  # in training",
            "dropout.eval()(torch.ones(1, 8))  # in use",
        ),
    ),
    *_of(ACTIVATIONS),
    Example(
        "torch.cat", r"torch\.cat\(", N_("Joins tensors along an axis."),
        ("torch.cat([torch.zeros(1, 1, 2), torch.ones(1, 2, 2)], 1)",),
    ),
    Example(
        "expand", r"\.expand\(", N_("Repeats an axis of size 1 without copying; -1 keeps an axis."),
        ("cls = torch.tensor([[[7., 8.]]])", "cls.expand(3, -1, -1).shape"),
    ),
    Example(
        "nn.GRU", r"last = encoder\(",
        N_("Returns all states and the last. An LSTM has two states."),
        (
            "_ = torch.manual_seed(0)",
            "gru = nn.GRU(2, 3, batch_first=True)",
            "states, last = gru(torch.ones(1, 4, 2))",
            "states.shape, last.shape",
        ),
    ),
    Example(
        "nn.GRUCell", r"after = decoder\(",
        N_("One step: input and state give the next state. An LSTM has two."),
        (
            "_ = torch.manual_seed(0)",
            "cell = nn.GRUCell(2, 3)",
            "state = cell(torch.ones(1, 2), torch.zeros(1, 3))",
            "state.detach()",
        ),
    ),
    Example(
        "score", r"\bscore\(",
        N_("Additive attention: v · tanh(W h + U s), one number per pair."),
        (
            "s, h = torch.tensor([[1., 0.]]), torch.tensor([[0., 1.], [1., 0.]])",
            "v = torch.tensor([1., 1.])",
            "torch.tanh(s[:, None] + h[None]) @ v  # W and U are the identity here",
        ),
        of=("score", "AdditiveScore"),
    ),
    Example(
        "nn.ModuleList", r"(?<!last = )\bencoder\(|x = decoder\(",
        N_("A list of modules whose parameters are registered."),
        (
            "blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])",
            "x = torch.ones(1, 2)",
            "for block in blocks: x = block(x)",
            "x.shape, len(list(blocks.parameters()))",
        ),
    ),
    Example(
        "F.scaled_dot_product_attention", r"\battention\(x",
        N_("Scores to weighted sum in one call; True in the mask = may attend."),
        (
            "q = k = torch.eye(2)[None]",
            "v = torch.tensor([[[2., 0.], [0., 4.]]])",
            "mask = torch.tensor([[True, False], [True, True]])",
            "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
        ),
    ),
    Example(
        "project", r"attention\.project\(",
        N_("Queries of one sequence, keys and values of another."),
        (
            "words, patches = torch.ones(1, 3, 2), torch.ones(1, 5, 2)",
            "to_q, to_k = nn.Linear(2, 2), nn.Linear(2, 2)",
            "(to_q(words) @ to_k(patches).mT).shape",
        ),
    ),
    Example(
        "nn.Module", r"\bmodel\(",
        N_("Calling it runs its forward; it holds its parts' parameters."),
        (
            "class Twice(nn.Module):\n    def forward(self, x):\n        return 2 * x",
            "model = Twice()",
            "model(torch.tensor([1., 5.]))",
        ),
    ),
    Example(
        "argmax", r"\.argmax\(", N_("The index of the largest number along an axis."),
        ("torch.tensor([[0.1, 0.7, 0.2]]).argmax(-1)",),
    ),
    Example(
        "topk", r"\.topk\(", N_("The largest numbers along an axis, and where they stand."),
        ("torch.tensor([[0.1, 0.6, 0.3]]).topk(2)",),
    ),
    Example(
        "scatter", r"\.scatter\(", N_("Writes numbers at the given places of an axis."),
        (
            "chosen, shares = torch.tensor([[1, 2]]), torch.tensor([[0.7, 0.3]])",
            "torch.zeros(1, 4).scatter(-1, chosen, shares)",
        ),
    ),
    Example(
        "mean", r"\.mean\(", N_("Mean along an axis, which disappears."),
        ("torch.tensor([[[1., 2.], [3., 6.]]]).mean(1)",),
    ),
    Example(
        "sum", r"\.sum\(", N_("Sum along an axis; keepdim keeps it with size 1."),
        ("keep = torch.tensor([[True, True, False]])", "keep / keep.sum(1, keepdim=True)"),
    ),
    Example(
        "[:, 0]", r"\[:, 0\]|\[:, :1\]",
        N_("The first token of each example; :1 keeps the axis."),
        ("x = torch.arange(6).view(1, 3, 2)", "x[:, 0], x[:, :1].shape"),
    ),
    Example(
        "tanh", r"tanh\(", N_("Maps each number to between -1 and 1."),
        ("torch.tensor([-2., 0., 0.5]).tanh()",),
    ),
)  # fmt: skip


def used(step: WalkStep) -> list[tuple[Example, str]]:
    """Return the functions that a step's code uses, in its order, with their examples.

    An example is as an interpreter shows it: ``>>> `` before what is typed.
    """
    code = "\n".join(line.partition("#")[0] for line in step.code.splitlines())
    places: list[tuple[int, int, Example]] = []
    for number, function in enumerate(FUNCTIONS):
        found = re.search(function.found, code)
        name, kind = function.of or ("", "NoneType")
        if found and type(step.names.get(name)).__name__ == kind:
            places.append((found.start(), number, function))
    return [
        (function, session(function.lines))
        for _start, _number, function in sorted(places, key=lambda place: place[:2])
    ]


@cache
def session(lines: tuple[str, ...]) -> str:
    """Run lines of Python; return what an interpreter would show of it.

    They draw their random numbers apart from everybody else's.
    """
    import math

    import torch
    import torch.nn.functional as F
    from torch import nn

    names: dict[str, object] = {"torch": torch, "F": F, "nn": nn, "math": math}
    lines_shown: list[str] = []
    with torch.random.fork_rng(devices=[]):
        for line in lines:
            first, *rest = line.splitlines()
            lines_shown += [f">>> {first}", *(f"... {more}" for more in rest)]
            if isinstance(statements(line)[0], ast.Expr):  # only our own lines run here
                lines_shown.append(repr(eval(line, names)))
            else:
                exec(line, names)
    return "\n".join(lines_shown)

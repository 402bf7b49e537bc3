"""What a look keeps of queries, keys and values gives each weight that it recorded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.looking.test_forward import HEADS, WIDTH, Additive, ByEinsum, Fused, states
from tests.looking.test_written_elsewhere import (
    SRC,
    TGT,
    Annotated,
    ByHeads,
    HeadsInAList,
    LikeMinGpt,
    LikeVitPytorch,
    Model,
    OnSlices,
    QueriesFirst,
    Recurrent,
    _padding,
    _triangle,
)
from tests.looking.test_written_elsewhere import states as narrow
from tests.models.variants import text_batch, text_model, vit_model
from tfm_core import look
from tfm_core.inspect.attention.maps import attention_cell, recorded_trace
from tfm_core.looking.foreign import stacks_of
from tfm_core.looking.opening import open_look
from tfm_core.looking.result import Look
from tfm_core.looking.seen import AttentionMap
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError


class Scored(nn.Module):
    """Attention whose scores ``change`` alters before the softmax."""

    def __init__(self, change: Callable[[Tensor], Tensor], *, n_groups: int = HEADS) -> None:
        super().__init__()
        self.n_heads, self.n_groups, self.change = HEADS, n_groups, change
        self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 16 * n_groups)

    def forward(self, x: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (HEADS, 8)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, self.n_groups, 8)).permute(2, 0, 3, 1, 4)
        k, v = (one.repeat_interleave(HEADS // self.n_groups, 1) for one in (k, v))
        scores = self.change(q @ k.mT)
        return scores.softmax(-1)[..., : x.shape[1]] @ v


class OneKey(nn.Module):
    """All heads share one key, as queries in a row before the product (GPT BigCode)."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.q, self.kv = HEADS, nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 16)

    def forward(self, x: Tensor) -> Tensor:
        n, length, _width = x.shape
        q = self.q(x).view(n, length * HEADS, 8)
        k, v = self.kv(x).chunk(2, -1)
        scores = torch.bmm(q, k.mT).view(n, length, HEADS, length) / 8**0.5
        return torch.bmm(scores.softmax(-1).view(n, length * HEADS, length), v)


def _alibi(scores: Tensor) -> Tensor:
    at = torch.arange(scores.shape[-1])
    slopes = 0.5 ** torch.arange(1, HEADS + 1)
    return scores / 8**0.5 - slopes[:, None, None] * (at[:, None] - at).abs()


def _masked(scores: Tensor) -> Tensor:
    forbidden = torch.ones(scores.shape[-2:]).triu(1).bool()
    return scores.masked_fill(forbidden, -torch.inf).mul_(0.3)


def _with_sink(scores: Tensor) -> Tensor:
    scores = torch.cat([scores, torch.full((*scores.shape[:-1], 1), 0.7)], -1)
    return scores - scores.amax(-1, keepdim=True)


def _fused_with_bias(x: Tensor) -> Tensor:
    bias = -(torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).abs().float()
    return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], bias, scale=0.2)


class FusedWithBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(_fused_with_bias(x)[:, 0])


def _of_engine(family: str, **settings: object) -> Callable[[], Look]:
    return lambda: look(text_model(family, **settings), *text_batch())


def _pair() -> Look:
    model = nn.Transformer(WIDTH, HEADS, 2, 2, 64, batch_first=True)
    mask = model.generate_square_subsequent_mask(4)
    return look(model, states(5), states(), tgt_mask=mask)


def _inner(module: nn.Module, call: Callable[..., Tensor]) -> Callable[[], Look]:
    return lambda: look(Model(module, call), narrow(), narrow(TGT))


CASES: dict[str, Callable[[], Look]] = {
    "nn.Transformer": _pair,
    "einsum": lambda: look(ByEinsum(), states()),
    "einsum, cropped": lambda: look(ByEinsum(causal=False), states(7), crop=slice(2, 5)),
    "half": lambda: look(ByEinsum().bfloat16(), states().bfloat16()),
    "shared keys, fused": lambda: look(Fused(), states(), torch.ones(4, 4).tril().bool()),
    "shared keys, fused, cropped": lambda: look(Fused(), states(7), crop=slice(2, 5)),
    "shared keys": lambda: look(Scored(lambda one: one / 8**0.5, n_groups=2), states()),
    "one key": lambda: look(OneKey(), states()),
    "alibi": lambda: look(Scored(_alibi), states()),
    "in place": lambda: look(Scored(_masked), states()),
    "cap": lambda: look(Scored(lambda one: 2 * (one / 2).tanh()), states()),
    "sink, shifted": lambda: look(Scored(_with_sink), states()),
    "fused with a bias": lambda: look(FusedWithBias(), states()),
    "notebook": _inner(ByHeads(), lambda one, x, y: one(x, x, y, _padding())),
    "annotated": _inner(Annotated(), lambda one, _x, y: one(y, y, y, _triangle()[0])),
    "mingpt": _inner(LikeMinGpt(), lambda one, x, _y: one(x)),
    "vit-pytorch": _inner(LikeVitPytorch(), lambda one, x, _y: one(x)),
    "queries first": _inner(QueriesFirst(), lambda one, x, _y: one(x)),
    "slices": lambda: look(OnSlices(), narrow()),
    "a list of heads": lambda: look(nn.Sequential(HeadsInAList()), narrow()),
    "t5": _of_engine("encoder-decoder", position="t5-bias"),
    "rotary": _of_engine("decoder-only", position="rotary", n_kv_heads=1),
    "vit": lambda: look(vit_model(), torch.randn(2, 3, 6, 6)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_cell_of_an_opened_look_has_the_weight_that_was_recorded(
    name: str, tmp_path: Path
) -> None:
    found = CASES[name]()
    assert found.maps
    run = open_look(found, RunStore(tmp_path, recorded=None))
    kinds = modules_by_kind(run.experiment)
    stacks = stacks_of(found)
    names = [module for modules in kinds.values() for module in modules]
    shown = [module for module in names if module in run.snapshot(0).attention]
    limit = 1e-2 if name == "half" else 1e-5
    for module, one in zip(shown, _in_order(shown, stacks.all), strict=True):
        n, n_heads, n_queries, n_keys = one.weights.shape
        for index, head, query in np.ndindex(n, n_heads, n_queries):
            trace = recorded_trace(run, index, module)
            length = len(axes(run.experiment, trace.item, module).key)
            if query >= len(axes(run.experiment, trace.item, module).query):
                continue
            try:
                made = attention_cell(run.experiment, trace, head, query, min(n_keys, length) - 1)
            except StudentError:
                assert one.allowed is not None
                assert not one.allowed.expand(one.weights.shape)[index, head, query].any()
                continue
            wanted = one.weights[index, head, query].numpy()
            shares = made.row["exponential"].to_numpy() / made.total
            assert np.abs(shares - wanted).max() <= limit
            assert made.scaled + made.bias == pytest.approx(made.score, abs=1e-3)
            product = made.dimensions["query"] * made.dimensions["key"]
            assert made.dot == pytest.approx(product.sum(), abs=1e-4)


def _in_order(names: list[str], maps: tuple[AttentionMap, ...]) -> list[AttentionMap]:
    """Return maps in the order of the modules of a run."""
    order = {name: number for number, name in enumerate(sorted(names, key=_place))}
    return [maps[order[name]] for name in names]


def _place(name: str) -> tuple[int, int]:
    stack, _layers, layer, kind = name.split(".")
    return (0 if stack == "encoder" else 1 if kind == "self_attention" else 2, int(layer))


def test_queries_and_keys_are_those_of_the_module_and_a_bias_is_kept_once() -> None:
    model, x = Fused(), states()
    (one,) = look(model, x).maps.values()
    assert one.vectors is not None
    with torch.no_grad():
        q = model.q(x).view(2, 4, HEADS, 8).transpose(1, 2)
        k, v = model.kv(x).view(2, 4, 2, 2, 8).permute(2, 0, 3, 1, 4)
    assert torch.equal(one.vectors.query, q)
    assert torch.equal(one.vectors.key, k.repeat_interleave(2, 1))
    assert torch.equal(one.vectors.value, v.repeat_interleave(2, 1))
    assert one.vectors.bias is None
    assert float(one.vectors.divisor) == pytest.approx(8**0.5)
    (one,) = look(Scored(_alibi), states()).maps.values()
    assert one.vectors is not None
    assert one.vectors.bias is not None
    assert one.vectors.bias.shape == (1, HEADS, 4, 4)
    assert torch.allclose(one.vectors.bias, _alibi(torch.zeros(1, HEADS, 4, 4)), atol=1e-5)
    x = states()
    (one,) = look(ByEinsum(), x).maps.values()
    found = look(ByEinsum(), x, most_bytes=4 * one.weights.numel() + 100)
    assert all(map_.vectors is None for map_ in found.maps.values())
    assert found.unseen[0].startswith("Queries, keys and values are left out")
    assert not look(ByEinsum(), states()).unseen


@pytest.mark.parametrize(
    "make",
    [
        lambda: look(Additive(), states(4), states(5)),
        lambda: look(Recurrent(), narrow(SRC), narrow(TGT)),
        lambda: look(Switched(), states()),
    ],
)
def test_weights_that_are_no_softmax_of_one_product_have_none(make: Callable[[], Look]) -> None:
    (one,) = make().maps.values()
    assert one.vectors is None


class Switched(Scored):
    """A head that is multiplied by 0 after its softmax."""

    def __init__(self) -> None:
        super().__init__(lambda one: one)

    def forward(self, x: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (HEADS, 8)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, HEADS, 8)).permute(2, 0, 3, 1, 4)
        on = torch.tensor([1.0, 0.0, 1.0, 1.0])[:, None, None]
        return ((q @ k.mT).softmax(-1) * on) @ v


def test_vectors_of_a_file_are_those_that_were_saved(tmp_path: Path) -> None:
    found = look(Scored(_with_sink), states(), crop=2)
    (again,) = look.load(found.save(tmp_path / "one.safetensors")).maps.values()
    (one,) = found.maps.values()
    assert one.vectors is not None
    assert again.vectors is not None
    assert one.vectors.tensors.keys() == again.vectors.tensors.keys()
    for name, values in one.vectors.tensors.items():
        assert torch.equal(values, again.vectors.tensors[name])

"""``look`` finds the attention of any model, equal to what the model itself computes."""

from __future__ import annotations

import threading
import warnings
from collections import UserDict
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models.variants import text_batch, text_model, vit_model
from tfm_core import look
from tfm_core.probe.capture import capture
from tfm_core.sentences import StudentError

B, Q, K, WIDTH, HEADS = 2, 4, 5, 32, 4


class ByEinsum(nn.Module):
    """Attention as minGPT and many notebooks write it: one projection, einsum, a float mask."""

    def __init__(self, *, causal: bool = True, to_half: bool = False) -> None:
        super().__init__()
        self.n_head, self.causal, self.to_half = HEADS, causal, to_half
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.classes = nn.Linear(WIDTH, 7)
        self.dropout = nn.Dropout(0.5)
        self.weights: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        n, length, _width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, HEADS, WIDTH // HEADS).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5
        if self.causal:
            forbidden = torch.ones(length, length).triu(1).bool()
            scores = scores.masked_fill(forbidden, torch.finfo(scores.dtype).min)
        self.weights = scores.softmax(-1)
        mixed = torch.einsum("bhqk,bkhd->bqhd", self.dropout(self.weights), v)
        return self.classes(self.out(mixed.reshape(n, length, WIDTH))).softmax(-1)


class Additive(nn.Module):
    """Bahdanau's scores, without a product of query and key."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8)
        self.score = nn.Linear(8, 1)

    def forward(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        both = self.query(x)[:, :, None] + self.key(memory)[:, None]
        weights = self.score(both.tanh()).squeeze(-1).softmax(-1)
        return weights @ memory, weights


class Fused(nn.Module):
    """Two groups of queries share keys in PyTorch's fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.n_heads = HEADS
        self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, allowed: Tensor | None = None) -> Tensor:
        n, length, _width = x.shape
        q = self.q(x).view(n, length, HEADS, 8).transpose(1, 2)
        k, v = self.kv(x).view(n, length, 2, 2, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, allowed, enable_gqa=True)


class Experts(nn.Module):
    """A softmax over experts, which is no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 4)
        self.experts = nn.Parameter(torch.randn(4, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(x).softmax(-1) @ self.experts


def states(length: int = Q) -> Tensor:
    return torch.randn(B, length, WIDTH)


def test_every_kind_of_attention_is_found_and_shared_keys_computed_once_more() -> None:
    model = nn.Transformer(WIDTH, HEADS, 2, 2, 64, batch_first=True)
    mask = model.generate_square_subsequent_mask(Q)
    pad = torch.zeros(B, K, dtype=torch.bool)
    pad[1, 3:] = True
    seen: dict[str, Tensor] = {}
    source, target = states(K), states(Q)
    found = look(model, source, target, tgt_mask=mask, src_key_padding_mask=pad)
    kinds = [(name, one.kind, one.is_causal) for name, one in found.maps.items()]
    assert kinds == [
        ("encoder.layers.0.self_attn", "self", False),
        ("encoder.layers.1.self_attn", "self", False),
        ("decoder.layers.0.self_attn", "self", True),
        ("decoder.layers.0.multihead_attn", "cross", False),
        ("decoder.layers.1.self_attn", "self", True),
        ("decoder.layers.1.multihead_attn", "cross", False),
    ]
    for one in found.maps.values():
        assert torch.allclose(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]))
    first = found.maps["encoder.layers.0.self_attn"]
    assert first.allowed is not None
    assert torch.equal(first.allowed.expand_as(first.weights)[:, 0, 0], ~pad)
    with torch.no_grad():
        _out, own = model.encoder.layers[0].self_attn.eval()(
            source, source, source, key_padding_mask=pad, average_attn_weights=False
        )
    assert torch.allclose(first.weights, own, atol=1e-6)
    assert not seen
    assert found.shapes["encoder"] == (B, K, WIDTH)
    assert found.n_parameters == sum(one.numel() for one in model.parameters())
    assert not found.unseen
    found = look(Additive(), states(Q), states(K))
    (one,) = found.maps.values()
    assert torch.equal(one.weights[:, 0], found.output[1])
    assert one.kind == "cross"
    model = Fused()
    allowed = torch.ones(Q, Q).tril().bool()
    x = states()
    (one,) = look(model, x, allowed).maps.values()
    with torch.no_grad():
        q = model.q(x).view(B, Q, HEADS, 8).transpose(1, 2)
        k = model.kv(x).view(B, Q, 2, 2, 8).permute(2, 0, 3, 1, 4)[0].repeat_interleave(2, 1)
        wanted = (q @ k.mT / 8**0.5).masked_fill(~allowed, -torch.inf).softmax(-1)
    assert torch.allclose(one.weights, wanted, atol=1e-6)
    assert (one.kind, one.is_causal, one.is_fused) == ("self", True, True)


@pytest.mark.parametrize("causal", [False, True])
def test_written_out_attention_is_found_and_other_softmaxes_are_not(causal: bool) -> None:
    model = ByEinsum(causal=causal)
    (one,) = look(model, states()).maps.values()
    assert model.weights is not None
    assert torch.equal(one.weights, model.weights)
    assert one.weights.shape == (B, HEADS, Q, Q)
    assert (one.kind, one.is_causal, one.is_fused) == ("self", causal, False)
    none = look(Experts(), states())
    assert not none.maps
    assert "No attention" in none.unseen[0]


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("encoder-decoder", {}),
        ("encoder-decoder", {"position": "t5-bias", "norm_first": True}),
        ("decoder-only", {"position": "rotary", "n_kv_heads": 1}),
        ("encoder-only", {}),
        ("vit", {}),
    ],
)
def test_models_of_the_engine_show_what_they_record_themselves(
    family: str, settings: dict[str, Any]
) -> None:
    if family == "vit":
        model, inputs = vit_model(**settings), (torch.randn(2, 3, 6, 6),)
    else:
        model, inputs = text_model(family, **settings), text_batch()
    with capture(model) as own, torch.no_grad():
        model(*inputs)
    found = look(model, *inputs)
    assert found.maps.keys() == own.of("weights").keys()
    for name, weights in own.of("weights").items():
        one, mask = found.maps[name], own.of("mask").get(name)
        assert torch.allclose(one.weights, weights, atol=1e-6)
        is_cross = name.endswith("cross_attention")
        assert one.kind == ("cross" if is_cross else "self")
        if mask is not None:
            shown = (
                torch.ones_like(weights, dtype=torch.bool) if one.allowed is None else one.allowed
            )
            assert torch.equal(shown.expand_as(weights) & (weights > 0), mask & (weights > 0))


def test_a_model_is_left_as_it_was_also_after_an_error_or_draws() -> None:
    model = ByEinsum()
    model.train()
    model.out.eval()
    before = [part.training for part in model.modules()]
    fast = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(RuntimeError):
        look(model, torch.randn(B, Q, WIDTH + 1))
    look(model, states())
    assert [part.training for part in model.modules()] == before
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(one.grad is None and one.requires_grad for one in model.parameters())
    found = look(nn.Sequential(Guarded()), states())
    assert list(found.maps) == ["0.second"]

    class Noisy(ByEinsum):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x + torch.randn_like(x))

    model, x = Noisy(), states()
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    look(model, x)
    assert torch.equal(torch.rand(3), wanted)

    class InPlace(ByEinsum):
        def forward(self, x: Tensor) -> Tensor:
            x += 1
            return super().forward(x)

    with torch.inference_mode():
        model, x = InPlace(), torch.randn(B, Q, WIDTH)
        (one,) = look(model, x).maps.values()
        assert torch.equal(one.weights, model.weights)

    class Merging(ByEinsum):
        n_merges = 0

        def train(self, mode: bool = True) -> Merging:
            self.n_merges += not mode
            return super().train(mode)

    model = Merging()
    look(model, states())
    assert model.n_merges == 0


def test_a_compiled_model_half_precision_and_inference_tensors_are_looked_into() -> None:
    model = ByEinsum()
    compiled = torch.compile(model, backend="eager")
    x = states()
    assert torch.equal(look(compiled, x).maps[""].weights, look(model, x).maps[""].weights)
    model = ByEinsum().to(torch.bfloat16)
    (one,) = look(model, states().to(torch.bfloat16)).maps.values()
    assert one.weights.dtype == torch.float32
    assert one.is_causal
    with torch.inference_mode():
        (one,) = look(ByEinsum(), states()).maps.values()
    assert one.weights.shape == (B, HEADS, Q, Q)


def test_maps_too_large_are_refused_with_their_size_and_layers_can_be_named() -> None:
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True),
        3,
        enable_nested_tensor=False,
    )
    x = states(16)
    size = 4 * B * HEADS * 16 * 16
    with pytest.raises(
        ValueError, match=r"take 24\.0 KiB, more than the 16\.0 KiB allowed.*layers="
    ):
        look(model, x, most_bytes=2 * size)
    with pytest.raises(ValueError, match=r"take 24,576 B, more than the 24,575 B allowed"):
        look(model, x, most_bytes=3 * size - 1)
    found = look(model, x, most_bytes=2 * size, layers=["layers.1.*"])
    assert list(found.maps) == ["layers.1.self_attn"]
    with pytest.raises(ValueError, match=r"torch\.nn\.Module"):
        look("model", x)  # type: ignore[arg-type]


def test_two_looks_are_both_right_and_layers_that_run_twice_numbered() -> None:
    model = ByEinsum()
    model.train()
    inputs = [states(4), states(6)]
    wanted = [look(model, x).maps[""].weights for x in inputs]
    found: dict[int, list[Tensor]] = {0: [], 1: []}

    def often(number: int) -> None:
        for _time in range(10):
            found[number].append(look(model, inputs[number]).maps[""].weights)

    threads = [threading.Thread(target=often, args=(number,)) for number in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for number in (0, 1):
        assert len(found[number]) == 10
        assert all(torch.equal(each, wanted[number]) for each in found[number])
    assert model.training
    block = ByEinsum()

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = block

        def forward(self, x: Tensor) -> Tensor:
            self.block(x)
            return self.block(x * 2)

    assert list(look(Twice(), states()).maps) == ["block", "block#2"]


def test_mixed_weights_and_kernels_that_show_nothing_are_told_of() -> None:
    class Talking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(HEADS, HEADS)

        def forward(self, x: Tensor) -> Tensor:
            n, length, _width = x.shape
            q, k, v = self.qkv(x).view(n, length, 3, HEADS, 8).permute(2, 0, 3, 1, 4)
            weights = (q @ k.mT).softmax(-1)
            return self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) @ v

    found = look(Talking(), states())
    assert not found.maps
    assert "before they multiply values" in found.unseen[0]
    from torch.nn.attention.flex_attention import flex_attention

    class Flex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            return flex_attention(q, k, v)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is slow without a compiler
        found = look(nn.Sequential(Flex()), states())
    assert not found.maps
    (sentence,) = found.unseen
    assert sentence.startswith("0 computes attention in flex_attention")


class Guarded(nn.Module):
    """A part that raises, which the model catches, and two branches."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = ByEinsum(), ByEinsum()

    def forward(self, x: Tensor) -> Tensor:
        try:
            self.first(x[..., :3])
        except RuntimeError:
            x = x + 1
        return self.second(x) if float(x.sum()) < 1e9 else self.first(x)


@pytest.mark.parametrize("is_fused", [False, True])
def test_a_crop_keeps_rows_and_columns_of_the_whole_map(is_fused: bool) -> None:
    model = Fused() if is_fused else ByEinsum()
    x = states(7)
    (whole,) = look(model, x).maps.values()
    (part,) = look(model, x, crop=slice(2, 5), tokens=list("abcdefg")).maps.values()
    assert torch.allclose(part.weights, whole.weights[..., 2:5, 2:5])
    assert (part.queries, part.keys, part.length) == (range(2, 5), range(2, 5), (7, 7))
    assert part.is_causal == whole.is_causal
    (first,) = look(model, x, crop=3, most_bytes=4 * B * HEADS * 9).maps.values()
    assert first.weights.shape[-2:] == (3, 3)


def test_windows_are_masks_and_models_without_weights_get_a_sentence() -> None:
    class Window(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n_heads, self.qkv = HEADS, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            at = torch.arange(x.shape[1])
            near = (at[:, None] >= at) & (at[:, None] - at < 2)
            return (q @ k.mT).masked_fill(~near, -1e4).softmax(-1) @ v

    (one,) = look(Window(), states()).maps.values()
    assert one.is_causal
    assert one.allowed is not None
    assert torch.equal(one.allowed[0, 0], torch.ones(Q, Q).tril().triu(-1).bool())
    with pytest.raises(StudentError, match="meta device"):
        look(ByEinsum().to("meta"), states())
    model, x = Fused().eval(), states()
    (own,) = look(model, x).maps.values()
    (one,) = look(torch.export.export(model, (x,)).module(), x).maps.values()
    assert torch.allclose(one.weights, own.weights)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"crop": "3"}, "crop is a number"),
        ({"crop": slice(90, 99)}, "no position"),
        ({"crop": slice(0, 9, 2)}, "crop is a number"),
        ({"layers": ["decoder.*"]}, "No attention is in layers"),
        ({"layers": [1]}, "layers is a list of names of modules"),
        ({"layers": 1}, "layers is a list of names of modules"),
        ({"tokens": ["one"]}, "tokens has 1 names"),
        ({"tokens": torch.ones(B, Q)}, "tokens names the positions"),
        ({"tokens": [["a"], ["b"], ["c"]]}, "tokens names the positions"),
    ],
)
def test_arguments_that_cannot_be_get_a_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(StudentError, match=words):
        look(nn.Sequential(ByEinsum()), states(), **given)


class Reads(nn.Module):
    """A model of Transformers, as far as it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.block = nn.Embedding(9, WIDTH), ByEinsum()

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        return self.block(self.table(input_ids) + self.table(token_type_ids))


class ReadsAll(Reads):
    """One that takes its batch as it is."""

    def forward(self, batch: dict[str, Tensor]) -> Tensor:  # type: ignore[override]
        return super().forward(**batch)


def test_a_batch_is_read_by_name_and_what_is_no_tensor_gets_a_sentence() -> None:
    ids = torch.tensor([[1, 2, 3]])
    batch = UserDict(input_ids=ids, token_type_ids=ids)  # as a BatchEncoding
    (one,) = look(Reads(), batch)
    assert one.weights.shape == (1, HEADS, 3, 3)
    assert len(look(ReadsAll(), dict(batch))) == 1
    for given in ("a text", [1, 2, 3], {"input_ids": [[1, 2]], "token_type_ids": ids}):
        with pytest.raises(StudentError, match="The model reads tensors"):
            look(Reads(), given)
    with pytest.raises(TypeError, match="missing"):
        look(Reads())


def test_maps_are_reached_by_number_and_as_arrays_and_tables() -> None:
    model = nn.Sequential(*(nn.TransformerEncoderLayer(WIDTH, HEADS, batch_first=True),) * 2)
    seen = look(model, states(), crop=slice(1, 3))
    assert [one.name for one in seen] == ["0.self_attn", "0.self_attn#2"]
    assert len(seen) == 2
    one = seen[1]
    assert one is seen["0.self_attn#2"] is seen.map(-1)
    assert repr(one) == "0.self_attn#2: self (2, 4, 2, 2)"
    assert repr(look(model[0], states())).startswith(
        "TransformerEncoderLayer, 137,504 parameters, 1 map\n"
    )
    assert np.array_equal(np.asarray(one), one.numpy())
    frame = seen.frame()
    assert list(frame) == ["example", "layer", "head", "query", "key", "weight"]
    assert len(frame) == 2 * B * HEADS * 4
    row = frame.query("layer == '0.self_attn#2' and example == 1 and head == 3 and query == 2")
    assert row["key"].tolist() == [1, 2]
    assert np.array_equal(row["weight"], one.numpy()[1, 3, 1])
    for name in (2, -3, "nowhere"):
        with pytest.raises(StudentError, match="There is no map"):
            seen[name]
    with pytest.raises(StudentError, match="This look has no map"):
        look(nn.Linear(WIDTH, 2), states()).frame()


class Pooling(nn.Module):
    """Learned queries ask (pooling by attention, a Q-Former, a Perceiver), computed in one way."""

    def __init__(self, how: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.num_heads, self.how = HEADS, how
        self.asked = nn.Parameter(torch.randn(1, 3, WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.own: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        query = self.asked.expand(len(x), -1, -1)
        if self.how == "module":
            out, self.own = self.attention(query, x, x, average_attn_weights=False)
            return out
        projected = zip(
            (query, x, x),
            self.attention.in_proj_weight.chunk(3),
            self.attention.in_proj_bias.chunk(3),
            strict=True,
        )
        q, k, v = (
            F.linear(one, weight, bias).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for one, weight, bias in projected
        )
        if self.how == "fused":
            return F.scaled_dot_product_attention(q, k, v)
        scores = q @ k.mT if self.how == "matmul" else torch.einsum("bhqd,bhkd->bhqk", q, k)
        self.own = (scores / 8**0.5).softmax(-1)
        if self.how == "matmul":
            return self.own @ v
        return torch.einsum("bhqk,bhkd->bqhd", self.own, v)


@pytest.mark.parametrize("how", ["module", "fused", "matmul", "einsum"])
def test_learned_queries_are_seen_however_they_are_computed(how: str) -> None:
    model, x = Pooling(how), states(K)
    with torch.no_grad():
        _out, own = model.attention(model.asked.expand(B, -1, -1), x, x, average_attn_weights=False)
    found = look(model, x)
    (one,) = found.maps.values()
    assert torch.allclose(one.weights, own, atol=1e-6)
    assert one.kind == "cross"
    assert not found.unseen


def test_learned_queries_that_ask_one_another_first_are_seen_too() -> None:
    class Detector(nn.Module):  # as DETR's first decoder layer: values of zeros
        def __init__(self) -> None:
            super().__init__()
            self.asked = nn.Parameter(torch.randn(1, 3, WIDTH))
            self.own = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
            self.cross = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            asked = self.asked.expand(len(x), -1, -1)
            y = self.own(asked, asked, torch.zeros_like(asked), average_attn_weights=False)[0]
            return self.cross(y + asked, x, x, average_attn_weights=False)[0]

    found = look(Detector(), states(K))
    assert [(name, one.kind) for name, one in found.maps.items()] == [
        ("own", "self"),
        ("cross", "cross"),
    ]
    assert not found.unseen


def test_a_class_token_that_asks_is_seen() -> None:
    class ClassAttention(nn.Module):  # CaiT: the token is the first key, too
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
            self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            token = self.token.expand(len(x), -1, -1)
            k, v = self.kv(torch.cat([token, x], 1)).chunk(2, -1)
            self.weights = (self.q(token) @ k.mT).softmax(-1)
            return self.weights @ v

    model = ClassAttention()
    (one,) = look(model, states(K)).maps.values()
    assert torch.equal(one.weights[:, 0], model.weights)
    assert one.weights.shape == (B, 1, 1, K + 1)


@pytest.mark.parametrize("gain", [60.0, 1000.0])
@pytest.mark.parametrize("need_weights", [False, True])
def test_scores_that_explode_are_no_mask(gain: float, need_weights: bool) -> None:
    model = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with torch.no_grad():
        model.in_proj_weight *= gain
    x = states()
    (one,) = look(model, x, x, x, need_weights=need_weights).maps.values()
    assert float(one.weights.min()) == 0.0
    assert one.allowed is None
    causal = torch.ones(Q, Q).triu(1).bool()
    given = {"attn_mask": causal, "need_weights": need_weights}
    (one,) = look(model, x, x, x, **given).maps.values()
    assert one.allowed is not None
    assert torch.equal(one.allowed.expand(B, HEADS, Q, Q), ~causal.expand(B, HEADS, Q, Q))


@pytest.mark.parametrize(
    "apply",
    [
        lambda scores, mask: torch.where(mask, scores, -1e4),
        lambda scores, mask: scores + torch.zeros(Q, Q).masked_fill(~mask, -1e9),
        lambda scores, mask: scores - 1e9 * (~mask).float(),
        lambda scores, mask: scores.index_put(
            (~mask).expand(B, 2, Q, Q).nonzero(as_tuple=True), torch.tensor(-1e9)
        ),
        lambda scores, mask: scores.masked_fill_(~mask, -6e3).clone().div(2.0),
    ],
)
def test_a_mask_is_found_however_it_is_applied(apply: Any) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n_heads, self.qkv = 2, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(60 * x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
            return apply(60 * q @ k.mT, torch.ones(Q, Q).tril().bool()).softmax(-1) @ v

    (one,) = look(Masked(), states()).maps.values()
    assert one.allowed is not None
    assert torch.equal(one.allowed.expand(B, 2, Q, Q)[0, 0], torch.ones(Q, Q).tril().bool())


class Latent(nn.Module):
    """Keys and values from a narrow common vector, queries from another (DeepSeek), a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.n_heads = HEADS
        self.down_q, self.up_q = nn.Linear(WIDTH, 7), nn.Linear(7, WIDTH)
        self.down, self.norm, self.up = (
            nn.Linear(WIDTH, 5),
            nn.LayerNorm(5),
            nn.Linear(5, 2 * WIDTH),
        )

    def forward(self, x: Tensor) -> Tensor:
        cache: list[Tensor] = []
        for part in x.split([3, 1, 1], 1):
            q = self.up_q(self.down_q(part)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            cache.append(self.up(self.norm(self.down(part))))
            k, v = torch.cat(cache, 1).unflatten(-1, (2, HEADS, -1)).permute(2, 0, 3, 1, 4)
            out = F.scaled_dot_product_attention(q, k, v)
        return out


def test_latent_attention_and_steps_with_a_cache_are_self_attention() -> None:
    found = look(Latent(), states(K))
    assert [(one.kind, one.length) for one in found.maps.values()] == [
        ("self", (3, 3)),
        ("self", (1, 4)),
        ("self", (1, 5)),
    ]


def test_a_decoder_that_reads_what_the_encoder_read_asks_across() -> None:
    model = nn.Transformer(WIDTH, HEADS, 1, 1, 64, batch_first=True)
    x = states()
    kinds = [one.kind for one in look(model, x, x).maps.values()]
    assert kinds == ["self", "self", "cross"]


@pytest.mark.parametrize("is_fused", [False, True])
@pytest.mark.parametrize("order", ["bwhqd", "bhwqd"])
def test_windows_are_examples_and_heads_stay_heads(order: str, is_fused: bool) -> None:
    class Windows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.num_heads, self.qkv = HEADS, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            parts = self.qkv(x.unflatten(1, (3, 2))).unflatten(-1, (3, HEADS, -1))
            q, k, v = torch.einsum(f"bwqshd->s{order}", parts)
            if is_fused:
                return F.scaled_dot_product_attention(q, k, v)
            return (q @ k.mT).softmax(-1) @ v

    (one,) = look(Windows(), states(6)).maps.values()
    assert one.weights.shape == (B * 3, HEADS, 2, 2)
    assert torch.allclose(one.weights.sum(-1), torch.ones(B * 3, HEADS, 2))


@pytest.mark.parametrize("is_fused", [False, True])
def test_attention_to_channels_is_named_not_shown(is_fused: bool) -> None:
    class Channels(nn.Module):  # XCiT
        def __init__(self) -> None:
            super().__init__()
            self.num_heads, self.qkv = HEADS, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 4, 1)
            if is_fused:
                return F.scaled_dot_product_attention(q, k, v)
            return (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT).softmax(-1) @ v

    found = look(nn.Sequential(Channels()), states(K))
    assert not found.maps
    assert [str(one) for one in found.unseen] == [
        "0 attends to channels, not to positions; its weights are not shown."
    ]


def test_layers_that_mix_positions_otherwise_are_named_and_routers_are_not() -> None:
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).chunk(3, -1)
            return x + q.relu() @ (k.relu().mT @ v)

    class Routed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(WIDTH, 4)
            self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _one in range(4))

        def forward(self, x: Tensor) -> Tensor:
            shares, chosen = self.gate(x).topk(2)
            shares = torch.zeros(*x.shape[:2], 4).scatter(-1, chosen, shares.softmax(-1))
            return sum(
                share[..., None] * one(x)
                for share, one in zip(shares.unbind(-1), self.experts, strict=True)
            )

    class Convolved(nn.Conv1d):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.mT).mT

    model = nn.Sequential(
        Latent(),
        nn.Flatten(1),
        nn.Unflatten(1, (1, WIDTH)),
        Linear(),
        Routed(),
        Convolved(WIDTH, WIDTH, 3, padding=1, groups=WIDTH),
    )
    found = look(model, states(K))
    assert all(name.startswith("0") for name in found.maps)
    assert [str(one) for one in found.unseen] == [
        "Parts that mix positions without a softmax, such as linear attention or a convolution, "
        "have no map: 2, such as 3, 5."
    ]

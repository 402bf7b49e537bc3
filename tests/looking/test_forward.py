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
        ({"crop": "3"}, "crop must be a number"),
        ({"crop": slice(90, 99)}, "no position"),
        ({"crop": slice(0, 9, 2)}, "crop must be a number"),
        ({"layers": ["decoder.*"]}, "No attention is in layers"),
        ({"layers": [1]}, "layers must be a list of module names"),
        ({"layers": 1}, "layers must be a list of module names"),
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

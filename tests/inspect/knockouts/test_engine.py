"""Parts of a model switched off: what is lost and what is not, and all is as before afterwards."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from tests.inspect.constructed import text_experiment, vit_experiment
from tfm_core.config import Experiment
from tfm_core.data.scenes import CANVAS
from tfm_core.data.shape import data_shape
from tfm_core.inspect.knockouts.engine import knocked_out, means_of, twin
from tfm_core.inspect.knockouts.parts import HAS_MEAN, KnockedPart, heads_of, name_of, parts_of
from tfm_core.layers.blocks import Stack
from tfm_core.models.build import build_model
from tfm_core.variants.positions import POSITIONS_OF_WORDS


def _captioner(**settings: object) -> Experiment:
    model = {"family": "captioner", "d_model": 12, "n_heads": 3, **settings}
    return Experiment.parse({"model": model, "task": {"kind": "caption", "name": "captions"}})


EXPERIMENTS = {
    "encoder-decoder": text_experiment(),
    "encoder-decoder, pre-norm": text_experiment(norm_first=True),
    "encoder-decoder, one norm": text_experiment(mistakes="shared-norm"),
    "encoder-only": text_experiment("encoder-only", window=2),
    "decoder-only": text_experiment("decoder-only"),
    "decoder-only, mistaken": text_experiment(
        "decoder-only", mistakes="mask-transposed,residual-from-normed"
    ),
    "vit": vit_experiment(),
    "vit with CLS": vit_experiment("cls"),
    "captioner": _captioner(),
    "captioner, mistaken": _captioner(mistakes="no-causal-mask", text_position="none"),
    "recurrent": text_experiment("recurrent", cell="lstm"),
}


def model_of(experiment: Experiment) -> nn.Module:
    torch.manual_seed(7)
    model = build_model(experiment.model, data_shape(experiment)).eval()
    with torch.no_grad():  # a bias that is zero would hide what is lost
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model


def inputs_of(experiment: Experiment) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(5)
    src = torch.randint(5, 9, (2, 5), generator=draw)
    src[1, 3:] = 0  # padding
    tgt_in = torch.randint(5, 9, (2, 4), generator=draw)
    images = torch.randn((2, 1, 28, 28), generator=draw)
    if experiment.model.family == "vit":
        return (images,)
    if experiment.model.family == "captioner":
        return torch.randn((2, 1, CANVAS, CANVAS), generator=draw), tgt_in
    return src, tgt_in


def answers(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    with torch.inference_mode():
        out: Tensor = model(*inputs)
    return out


def condition(model: nn.Module) -> list[object]:
    """What a model is made of: its modules, their attributes and hooks, by identity."""
    return [
        (name, id(module), key, *_identities(value))
        for name, module in model.named_modules()
        for key, value in vars(module).items()
    ]


def _identities(value: object) -> list[object]:
    if not isinstance(value, dict):
        return [id(value)]
    return [(key, id(held)) for key, held in value.items()]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_part_makes_a_difference_and_the_model_is_as_before_afterwards(name: str) -> None:
    experiment = EXPERIMENTS[name]
    model, inputs = model_of(experiment), inputs_of(experiment)
    before, whole = condition(model), answers(model, inputs)
    weights = copy.deepcopy(model.state_dict())
    parts = parts_of(experiment)
    assert parts
    means = means_of(model, parts, [inputs])
    assert condition(model) == before
    for part in parts:
        with knocked_out(model, [part]):
            without = answers(model, inputs)
        assert not torch.allclose(without, whole), name_of(part)
        assert condition(model) == before
        if part in means:
            with knocked_out(model, [part], means):
                assert not torch.equal(answers(model, inputs), without), name_of(part)
    with pytest.raises(ValueError, match=r"math|nonnegative"), knocked_out(model, parts, means):
        math.sqrt(-answers(model, inputs).abs().sum())
    assert condition(model) == before
    assert torch.equal(answers(model, inputs), whole)
    for key, weight in model.state_dict().items():
        assert torch.equal(weight, weights[key])


def test_every_part_has_a_code_and_a_name_of_its_own_and_none_is_offered_that_is_not_there() -> (
    None
):
    for name in EXPERIMENTS:
        parts = parts_of(EXPERIMENTS[name])
        assert len({part.code for part in parts}) == len(parts)
        assert len({str(name_of(part)) for part in parts}) == len(parts)
        assert all("{" not in name_of(part) for part in parts)
    kinds = {part.kind for part in parts_of(text_experiment("encoder-only", position="none"))}
    assert "positions" not in kinds
    assert not heads_of(EXPERIMENTS["recurrent"])
    assert "mask" not in {part.kind for part in parts_of(EXPERIMENTS["vit"])}
    bare = text_experiment("decoder-only", mistakes="no-causal-mask,no-residuals", norm="none")
    kinds = {part.kind for part in parts_of(bare)}
    assert kinds == {"head", "sublayer", "layer", "positions"}


def test_heads_that_nothing_reads_or_that_say_one_thing_are_missed_as_they_are() -> None:
    experiment = EXPERIMENTS["encoder-decoder"]
    model, inputs = model_of(experiment), inputs_of(experiment)
    idle, busy = (KnockedPart("head", "decoder", 1, "cross", head) for head in (0, 1))
    mixing = model.get_submodule("decoder.layers.1.cross_attention.out_projection")
    with torch.no_grad():
        mixing.weight[:, : 12 // 3] = 0.0
    whole = answers(model, inputs)
    with knocked_out(model, [idle]):
        torch.testing.assert_close(answers(model, inputs), whole)
    with knocked_out(model, [busy]):
        assert not torch.allclose(answers(model, inputs), whole)
    experiment = EXPERIMENTS["decoder-only"]
    model, inputs = model_of(experiment), inputs_of(experiment)
    head = KnockedPart("head", "decoder", 0, "self", 2)
    projection = model.get_submodule("decoder.layers.0.self_attention.in_projection")
    with torch.no_grad():
        projection.weight[2 * 12 + 2 * 4 :] = 0.0  # its values: what is left is their bias
    whole = answers(model, inputs)
    with knocked_out(model, [head], means_of(model, [head], [inputs])):
        torch.testing.assert_close(answers(model, inputs), whole)
    with knocked_out(model, [head]):
        assert not torch.allclose(answers(model, inputs), whole)
    experiment = EXPERIMENTS["encoder-decoder"]
    model, (src, tgt_in) = model_of(experiment), inputs_of(experiment)
    part = KnockedPart("sublayer", "encoder", 1, "ff")
    both = means_of(model, [part], [(src, tgt_in)])[part]
    alone = means_of(model, [part], [(src[:1], tgt_in[:1]), (src[1:, :3], tgt_in[1:])])[part]
    torch.testing.assert_close(both, alone)


@pytest.mark.parametrize("name", ["encoder-decoder", "vit with CLS", "decoder-only"])
def test_without_a_layer_it_is_the_model_without_that_block(name: str) -> None:
    experiment = EXPERIMENTS[name]
    model, inputs = model_of(experiment), inputs_of(experiment)
    stack = "decoder" if hasattr(model, "decoder") else "encoder"
    shorter = copy.deepcopy(model)
    short = shorter.get_submodule(stack)
    assert isinstance(short, Stack)
    del short.layers[1]
    short.windows = short.windows[1:]
    with knocked_out(model, [KnockedPart("layer", stack, 1)]):  # type: ignore[arg-type]
        torch.testing.assert_close(answers(model, inputs), answers(shorter, inputs))


def test_without_its_mask_the_past_depends_on_the_future_and_padding_is_still_hidden() -> None:
    experiment = EXPERIMENTS["decoder-only"]
    model, (src, tgt_in) = model_of(experiment), inputs_of(experiment)
    other = tgt_in.clone()
    other[:, -1] = 10
    first = answers(model, (src, tgt_in))[:, 0]
    torch.testing.assert_close(first, answers(model, (src, other))[:, 0])
    with knocked_out(model, [KnockedPart("mask", "decoder", None, "self")]):
        blind = answers(model, (src, tgt_in))[:, 0]
        assert not torch.allclose(blind, answers(model, (src, other))[:, 0])
    padded = torch.cat([tgt_in, torch.zeros_like(tgt_in)], 1)
    with knocked_out(model, [KnockedPart("mask", "decoder", None, "self")]):
        seen = answers(model, (src, padded))[:, : tgt_in.size(1)]
        torch.testing.assert_close(seen, answers(model, (src, tgt_in)))


@pytest.mark.parametrize("position", sorted(set(POSITIONS_OF_WORDS) - {"none"}))
def test_without_positions_an_encoder_reads_a_set(position: str) -> None:
    experiment = text_experiment("encoder-only", position=position)
    model = model_of(experiment)
    src = torch.tensor([[5, 6, 7, 8, 9]])
    order = torch.tensor([3, 0, 4, 1, 2])
    length = torch.zeros(1, 5, dtype=torch.int64)
    usual = answers(model, (src, length))
    assert not torch.allclose(answers(model, (src[:, order], length)), usual[:, order], atol=1e-4)
    with knocked_out(model, [KnockedPart("positions", "encoder")]):
        as_set = answers(model, (src, length))
        moved = answers(model, (src[:, order], length))
    torch.testing.assert_close(moved, as_set[:, order], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("norm_first", [True, False])
def test_without_a_residual_the_sublayer_takes_the_place_of_the_token(norm_first: bool) -> None:
    experiment = text_experiment("encoder-only", n_layers=1, norm_first=norm_first)
    model = model_of(experiment)
    stack = model.get_submodule("encoder")
    assert isinstance(stack, Stack)
    (block,) = stack.layers
    x = torch.randn(2, 5, 12)
    with torch.inference_mode():
        if norm_first:
            y = block.self_attention(block.self_attention_norm(x))
            y = y + block.feed_forward(block.feed_forward_norm(y))
        else:
            y = block.self_attention_norm(block.self_attention(x))
            y = block.feed_forward_norm(y + block.feed_forward(y))
        with knocked_out(model, [KnockedPart("residual", "encoder", 0, "self")]):
            torch.testing.assert_close(block(x), y)


def test_parts_are_off_together_or_in_one_use_and_a_twin_shares_weights() -> None:
    experiment = EXPERIMENTS["encoder-decoder, one norm"]
    model = model_of(experiment)
    block = model.get_submodule("encoder.layers.0")
    seen: list[str] = []
    names = ("self_attention_norm", "feed_forward_norm")
    for name in names:
        block.get_submodule(name).register_forward_hook(lambda *_, name=name: seen.append(name))
    with knocked_out(model, [KnockedPart("norm", "encoder", 0, "self")]):
        answers(model, inputs_of(experiment))
    assert "feed_forward_norm" in seen
    experiment = EXPERIMENTS["encoder-only"]
    model, inputs = model_of(experiment), inputs_of(experiment)
    heads = [part for part in heads_of(experiment) if part.layer == 0]
    attention = model.get_submodule("encoder.layers.0.self_attention")
    with knocked_out(model, heads):
        one_by_one = answers(model, inputs)
    with torch.no_grad():  # with every head gone, its bias is what the projection says
        attention.get_submodule("out_projection").weight.zero_()
    torch.testing.assert_close(one_by_one, answers(model, inputs))
    experiment = EXPERIMENTS["encoder-decoder"]
    model, inputs = model_of(experiment), inputs_of(experiment)
    other = twin(model)
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(first is second for first, second in pairs)
    whole = answers(model, inputs)
    with knocked_out(other, [part for part in parts_of(experiment) if part.kind in HAS_MEAN]):
        assert torch.equal(answers(model, inputs), whole)

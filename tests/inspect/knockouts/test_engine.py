"""Interventions inside a block: parts off, activations patched; the model stays untouched."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.inspect.constructed import text_experiment, vit_experiment
from tests.models.variants import text_batch
from tests.probe.test_intervene import condition, plain, writer
from tfm_core.choices.config import Experiment
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.data.caption_words import CANVAS
from tfm_core.data.tasks import data_shape
from tfm_core.inspect.knockouts.engine import (
    AnswerPair,
    direct_effects,
    fixed_pattern,
    knocked_out,
    lens_of,
    means_of,
    patches_of,
    paths_of,
    reweigh_heads,
)
from tfm_core.inspect.knockouts.parts import Part, heads_of, name_of, part_of, parts_of
from tfm_core.inspect.text.language_model import lens_logits
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Stack
from tfm_core.layers.recorder import Change
from tfm_core.models.build import build_model
from tfm_core.models.text import DecoderOnly
from tfm_core.probe.capture import capture, intervene


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


def built_model(experiment: Experiment) -> nn.Module:
    torch.manual_seed(7)
    model = build_model(experiment.model, data_shape(experiment)).eval()
    with torch.no_grad():  # a bias that is zero would hide what is lost
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model


def batch_of(experiment: Experiment) -> tuple[Tensor, ...]:
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


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_part_makes_a_difference_and_the_model_is_as_before_afterwards(name: str) -> None:
    experiment = EXPERIMENTS[name]
    model, inputs = built_model(experiment), batch_of(experiment)
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


def test_means_are_over_tokens_alone_and_a_head_that_says_one_thing_is_not_missed() -> None:
    experiment = EXPERIMENTS["decoder-only"]
    model, inputs = built_model(experiment), batch_of(experiment)
    head = Part("head", "decoder", 0, "self", 2)
    projection = model.get_submodule("decoder.layers.0.self_attention.in_projection")
    with torch.no_grad():
        projection.weight[2 * 12 + 2 * 4 :] = 0.0  # its values: what is left is their bias
    whole = answers(model, inputs)
    with knocked_out(model, [head], means_of(model, [head], [inputs])):
        torch.testing.assert_close(answers(model, inputs), whole)
    with knocked_out(model, [head]):
        assert not torch.allclose(answers(model, inputs), whole)
    experiment = EXPERIMENTS["encoder-decoder"]
    model, (src, tgt_in) = built_model(experiment), batch_of(experiment)
    part = Part("sublayer", "encoder", 1, "ff")
    both = means_of(model, [part], [(src, tgt_in)])[part]
    alone = means_of(model, [part], [(src[:1], tgt_in[:1]), (src[1:, :3], tgt_in[1:])])[part]
    torch.testing.assert_close(both, alone)


@torch.no_grad()
@pytest.mark.parametrize("mean", [None, torch.randn(12)], ids=["zero", "mean"])
@pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
def test_a_part_that_is_off_is_its_arithmetic_without_it(
    norm_first: bool, mean: Tensor | None
) -> None:
    model, ids = writer(norm_first), text_batch()[1]
    constant = torch.zeros(12) if mean is None else mean
    block, attention = "decoder.layers.1", "decoder.layers.1.self_attention"
    is_word = (ids != 0)[:, None, None, :]

    def without_head(merged: Tensor, _: object) -> Tensor:
        head = constant[:4].expand_as(merged[..., 4:8])
        return torch.cat([merged[..., :4], head, merged[..., 8:]], -1)

    off: dict[str, dict[str, Change]] = {
        "2.self.2": {f"{attention}.merged": without_head},
        "2.self": {f"{attention}.output": lambda out, _: constant.expand_as(out)},
        "2.ff": {f"{block}.feed_forward.output": lambda out, _: constant.expand_as(out)},
        "2": {f"{block}.residual": lambda _, x: x + constant},
        "positions": {"positions.placed": lambda _, x: x + constant},
        "2.self.residual": {f"{attention}_norm.skipped": lambda *_: None},
        "2.self.norm": {f"{attention}_norm.{'normed' if norm_first else 'joined'}": lambda _, x: x},
        "self.mask": {
            f"decoder.layers.{n}.self_attention.mask": lambda *_: is_word for n in range(3)
        },
    }
    experiment = text_experiment("decoder-only", n_layers=3, norm_first=norm_first)
    parts = {part.code: part for part in parts_of(experiment)}
    for code, changes in off.items():
        part = parts[f"decoder.{code}"]
        means = {part: constant[:4] if part.head else constant} if mean is not None else None
        with knocked_out(model, [part], means):
            found = model(ids[:, :0], ids)
        assert torch.equal(found, plain(model, None, ids, changes)), code
    even = {f"{attention}.weights": lambda weights, mask: even_over(mask).expand_as(weights)}
    with knocked_out(model, [parts["decoder.2.self"]], is_even=True):
        found = model(ids[:, :0], ids)
    torch.testing.assert_close(found, plain(model, None, ids, even))


def even_over(mask: Tensor) -> Tensor:
    return mask / mask.sum(-1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize("position", sorted(set(POSITIONS_OF_WORDS) - {"none"}))
def test_without_positions_an_encoder_reads_a_set(position: str) -> None:
    experiment = text_experiment("encoder-only", position=position)
    model = built_model(experiment)
    src = torch.tensor([[5, 6, 7, 8, 9]])
    order = torch.tensor([3, 0, 4, 1, 2])
    length = torch.zeros(1, 5, dtype=torch.int64)
    usual = answers(model, (src, length))
    assert not torch.allclose(answers(model, (src[:, order], length)), usual[:, order], atol=1e-4)
    with knocked_out(model, [Part("positions", "encoder")]):
        as_set = answers(model, (src, length))
        moved = answers(model, (src[:, order], length))
    torch.testing.assert_close(moved, as_set[:, order], atol=1e-4, rtol=1e-4)


_WITH_BLOCKS = [name for name in EXPERIMENTS if name != "recurrent"]


def _two_inputs(name: str) -> tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...], AnswerPair]:
    experiment = EXPERIMENTS[name]
    model = built_model(experiment)
    clean = tuple(part[:1] for part in batch_of(experiment))
    first = clean[0].clone()
    if first.is_floating_point():
        first[..., 4:9] += 1.0
    else:
        first[0, 2] = 5 if first[0, 2] != 5 else 6
    position = None if experiment.model.family == "vit" else -1
    return model, clean, (first, *clean[1:]), AnswerPair(position, 5, 7)


def _difference(model: nn.Module, inputs: tuple[Tensor, ...], answers: AnswerPair) -> float:
    with torch.inference_mode():
        return float(answers.difference(model(*inputs)))


@pytest.mark.parametrize("name", ["decoder-only", "encoder-decoder", "encoder-decoder, pre-norm"])
def test_the_whole_stream_at_one_changed_token_restores_the_clean_answer(name: str) -> None:
    model, clean, corrupted, answers = _two_inputs(name)
    patches = patches_of(model, clean, corrupted, answers)
    stack = "decoder" if name == "decoder-only" else "encoder"
    into = patches[f"{stack}.input"]
    assert into[2] == pytest.approx(1.0, abs=1e-4)  # the token that differs
    np.testing.assert_allclose(np.delete(into, 2), 0.0, atol=1e-4)


def test_what_nothing_reads_restores_nothing_behind_the_last_block() -> None:
    model, clean, corrupted, answers = _two_inputs("decoder-only")
    last = patches_of(model, clean, corrupted, answers)["decoder.layers.1.residual"]
    assert len(last) == 5 + 4  # source and target
    np.testing.assert_allclose(last[:-1], 0.0, atol=1e-5)
    assert last[-1] == pytest.approx(1.0, abs=1e-4)
    model, clean, corrupted, answers = _two_inputs("encoder-decoder")
    mixing = model.get_submodule("decoder.layers.1.cross_attention.out_projection")
    with torch.no_grad():
        mixing.weight[:, : 12 // 3] = 0.0
    heads = patches_of(model, clean, corrupted, answers)["decoder.layers.1.cross_attention.merged"]
    assert heads[0] == pytest.approx(0.0, abs=1e-4)
    assert abs(heads[1:]).max() > 1e-3


def test_a_patch_is_the_clean_activation_put_in_by_a_hook_of_pytorch() -> None:
    model, clean, corrupted, answers = _two_inputs("encoder-decoder")
    project = model.get_submodule("decoder.layers.2.cross_attention.out_projection")
    seen: list[Tensor] = []
    with project.register_forward_pre_hook(lambda _module, args: seen.append(args[0])):
        first = _difference(model, clean, answers)

    def put(_module: nn.Module, args: tuple[Tensor]) -> Tensor:
        return torch.cat([args[0][..., :4], seen[0][..., 4:8], args[0][..., 8:]], -1)

    second = _difference(model, corrupted, answers)
    with project.register_forward_pre_hook(put):
        expected = (_difference(model, corrupted, answers) - second) / (first - second)
    found = patches_of(model, clean, corrupted, answers)
    heads = found["decoder.layers.2.cross_attention.merged"]
    assert heads[1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", _WITH_BLOCKS)
def test_direct_effects_make_the_logits_and_the_lens_ends_with_the_answer(name: str) -> None:
    model, clean, _, answers = _two_inputs(name)
    before = condition(model)
    effects = direct_effects(model, clean, answers)
    assert condition(model) == before
    total = sum(effect for _part, effect in effects)
    assert total == pytest.approx(_difference(model, clean, answers), abs=1e-4)
    with torch.no_grad():  # biases alone are what is left when nothing is biased
        for path, weight in model.named_parameters():
            if path.endswith("bias"):
                weight.zero_()
    _none, biases = direct_effects(model, clean, answers)[-1]
    assert biases == pytest.approx(0.0, abs=1e-4)
    model, clean, _, answers = _two_inputs(name)
    before = condition(model)
    lens = lens_of(model, clean, answers)
    assert condition(model) == before
    with torch.inference_mode():
        logits = model(*clean)
    row = logits[0] if answers.position is None else logits[0, answers.position]
    np.testing.assert_allclose(lens[-1], row.softmax(-1)[[5, 7]].numpy(), atol=1e-5)
    assert not np.allclose(lens[0], lens[-1], atol=1e-5)


def test_a_direct_effect_is_the_heads_vector_times_the_output_matrix() -> None:
    experiment = text_experiment("decoder-only", norm_first=True, n_layers=2)
    model = built_model(experiment)
    inputs = tuple(part[:1] for part in batch_of(experiment))
    answers = AnswerPair(-1, 5, 7)
    effects = direct_effects(model, inputs, answers)
    stack = model.get_submodule("decoder")
    assert isinstance(stack, Stack)
    assert isinstance(stack.final_norm, nn.LayerNorm)
    norm, attention = stack.final_norm, model.get_submodule("decoder.layers.1.self_attention")
    with capture(model, only={"residual", "merged"}) as seen:
        model(*inputs)
    with torch.no_grad():
        last = seen["decoder.layers.1.residual"][0, -1]
        merged = seen["decoder.layers.1.self_attention.merged"][0, -1]
        scale = (last.var(correction=0) + norm.eps).sqrt()
        read = model.get_submodule("output").weight
        assert isinstance(read, Tensor)
        mixing = attention.get_submodule("out_projection").weight
        assert isinstance(mixing, Tensor)
        added = mixing[:, 4:8] @ merged[4:8]
        through = (added - added.mean()) / scale * norm.weight
        expected = float(through @ (read[5] - read[7]))
    head = Part("head", "decoder", 1, "self", 1)
    assert dict(effects)[head] == pytest.approx(expected, abs=1e-4)


def test_the_lens_is_that_of_the_gpt_page_and_unlike_inputs_get_a_sentence() -> None:
    model, (src, tgt_in), _, answers = _two_inputs("decoder-only")
    assert isinstance(model, DecoderOnly)
    logits = lens_logits(model, src, tgt_in)  # (L + 1, T, V)
    expected = logits[:, -1].softmax(-1)[:, [5, 7]].numpy()
    np.testing.assert_allclose(lens_of(model, (src, tgt_in), answers), expected, atol=1e-5)
    model, (src, tgt), corrupted, answers = _two_inputs("encoder-decoder")
    with pytest.raises(ValueError, match="same number of tokens"):
        patches_of(model, (src[:, :4], tgt), corrupted, answers)
    with pytest.raises(ValueError, match="the same answer"):
        patches_of(model, (src, tgt), (src, tgt), answers)


# where the mask is transposed, no answer sees a source
@pytest.mark.parametrize("name", [n for n in _WITH_BLOCKS if n != "decoder-only, mistaken"])
def test_all_paths_together_are_the_patch_of_the_head(name: str) -> None:
    model, clean, corrupted, answers = _two_inputs(name)
    before = condition(model)
    for point, shares in patches_of(model, clean, corrupted, answers).items():
        for head, share in enumerate(shares if point.endswith(".merged") else ()):
            sender = part_of(point.removesuffix(".merged"), head)
            total, _direct, _through = paths_of(model, clean, corrupted, answers, sender)
            assert total == pytest.approx(share, abs=2e-4)
    assert condition(model) == before


def _linear() -> tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...], AnswerPair]:
    """Return a model that is linear where attention is held: no norms, no feed-forward."""
    experiment = text_experiment("decoder-only", norm="none", norm_first=True, n_layers=3, d_ff=0)
    model = built_model(experiment)
    clean = tuple(part[:1] for part in batch_of(experiment))
    changed = clean[0].clone()
    changed[0, 2] = 5 if changed[0, 2] != 5 else 6
    return model, clean, (changed, *clean[1:]), AnswerPair(-1, 5, 7)


def test_paths_sum_to_the_total_and_are_direct_closed_or_through_cross() -> None:
    model, clean, corrupted, answers = _linear()
    even = torch.tril(torch.ones(9, 9)) / torch.arange(1, 10)[:, None]
    held = {
        f"{name}.weights": reweigh_heads(None, fixed_pattern(even))
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    with intervene(model, held):
        head = Part("head", "decoder", 0, "self", 1)
        total, direct, through = paths_of(model, clean, corrupted, answers, head)
    assert abs(total) > 1e-3
    assert direct + sum(through.values()) == pytest.approx(total, abs=1e-4)
    assert {part.module for part in through} == {
        f"decoder.layers.{n}.self_attention" for n in (1, 2)
    }
    head = Part("head", "decoder", 2, "self", 0)
    total, direct, through = paths_of(model, clean, corrupted, answers, head)
    assert not through
    assert direct == pytest.approx(total, abs=1e-5)
    model, clean, corrupted, answers = _two_inputs("decoder-only")
    mixing = model.get_submodule("decoder.layers.1.self_attention.out_projection")
    with torch.no_grad():
        mixing.weight[:, : 12 // 3] = 0.0
    head = Part("head", "decoder", 0, "self", 1)
    _total, _direct, through = paths_of(model, clean, corrupted, answers, head)
    later = [through[Part("head", "decoder", 1, "self", n)] for n in range(3)]
    assert later[0] == pytest.approx(0.0, abs=1e-4)
    assert np.abs(later[1:]).max() > 1e-4
    model, clean, corrupted, answers = _two_inputs("encoder-decoder")
    head = Part("head", "encoder", 1, "self", 0)
    _total, direct, through = paths_of(model, clean, corrupted, answers, head)
    assert direct == pytest.approx(0.0, abs=1e-4)
    assert {part.sublayer for part in through if part.stack == "decoder"} == {"cross"}

"""Patches restore what they should, direct effects sum to the logits, and paths to the whole."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.inspect.constructed import text_experiment
from tests.inspect.knockouts.test_engine import EXPERIMENTS, condition, inputs_of, model_of
from tfm_core.inspect.knockouts.engine import (
    AnswerPair,
    direct_effects,
    fixed_pattern,
    lens_of,
    patches_of,
    paths_of,
    reweigh_heads,
)
from tfm_core.inspect.knockouts.parts import Part, part_of
from tfm_core.inspect.text.language_model import lens_logits
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Stack
from tfm_core.models.text import DecoderOnly
from tfm_core.probe.capture import capture, intervene

_WITH_BLOCKS = [name for name in EXPERIMENTS if name != "recurrent"]


def _two_inputs(name: str) -> tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...], AnswerPair]:
    experiment = EXPERIMENTS[name]
    model = model_of(experiment)
    clean = tuple(part[:1] for part in inputs_of(experiment))
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
    model = model_of(experiment)
    inputs = tuple(part[:1] for part in inputs_of(experiment))
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
    with pytest.raises(ValueError, match="alike"):
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
    model = model_of(experiment)
    clean = tuple(part[:1] for part in inputs_of(experiment))
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

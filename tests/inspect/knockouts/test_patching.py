"""Patches restore what they should, and direct effects sum to the logits."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.inspect.constructed import text_experiment
from tests.inspect.knockouts.test_engine import EXPERIMENTS, condition, inputs_of, model_of
from tfm_core.inspect.knockouts.engine import knocked_out
from tfm_core.inspect.knockouts.parts import KnockedPart
from tfm_core.inspect.knockouts.patching import Answers, direct_effects, lens_of, patches_of
from tfm_core.inspect.text.gpt_reading import lens_logits
from tfm_core.layers.blocks import Stack
from tfm_core.models.text import DecoderOnly

_WITH_BLOCKS = [name for name in EXPERIMENTS if name != "recurrent"]


def _two_inputs(name: str) -> tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...], Answers]:
    experiment = EXPERIMENTS[name]
    model = model_of(experiment)
    clean = tuple(part[:1] for part in inputs_of(experiment))
    first = clean[0].clone()
    if first.is_floating_point():
        first[..., 4:9] += 1.0
    else:
        first[0, 2] = 5 if first[0, 2] != 5 else 6
    position = None if experiment.model.family == "vit" else -1
    return model, clean, (first, *clean[1:]), Answers(position, 5, 7)


def _difference(model: nn.Module, inputs: tuple[Tensor, ...], answers: Answers) -> float:
    with torch.inference_mode():
        return float(answers.difference(model(*inputs)))


# where the mask is transposed, no answer sees a source
@pytest.mark.parametrize("name", [n for n in _WITH_BLOCKS if n != "decoder-only, mistaken"])
def test_a_patch_of_nothing_changes_nothing_and_both_ends_are_the_models_own(name: str) -> None:
    model, clean, corrupted, answers = _two_inputs(name)
    before = condition(model)
    patches = patches_of(model, clean, corrupted, answers)
    assert condition(model) == before
    assert patches.clean == pytest.approx(_difference(model, clean, answers), abs=1e-5)
    assert patches.corrupted == pytest.approx(_difference(model, corrupted, answers), abs=1e-5)
    assert patches.restored(np.array([patches.clean, patches.corrupted])).tolist() == [1, 0]
    assert set(patches.heads) == {
        module for module, part in model.named_modules() if hasattr(part, "out_projection")
    }


@pytest.mark.parametrize("name", ["decoder-only", "encoder-decoder", "encoder-decoder, pre-norm"])
def test_the_whole_stream_at_one_changed_token_restores_the_clean_answer(name: str) -> None:
    model, clean, corrupted, answers = _two_inputs(name)
    patches = patches_of(model, clean, corrupted, answers)
    stack = "decoder" if name == "decoder-only" else "encoder"
    into = patches.streams[stack][0]
    assert patches.restored(into)[2] == pytest.approx(1.0, abs=1e-4)  # the token that differs
    same = np.delete(into, 2)
    np.testing.assert_allclose(patches.restored(same), 0.0, atol=1e-4)


def test_what_nothing_reads_restores_nothing_behind_the_last_block() -> None:
    model, clean, corrupted, answers = _two_inputs("decoder-only")
    last = patches_of(model, clean, corrupted, answers).streams["decoder"][-1]
    restored = (last - last[0]) / (last[-1] - last[0])
    assert len(last) == 5 + 4  # source and target
    np.testing.assert_allclose(restored[:-1], 0.0, atol=1e-5)
    model_clean = patches_of(model, clean, corrupted, answers).clean
    assert last[-1] == pytest.approx(model_clean, abs=1e-4)
    model, clean, corrupted, answers = _two_inputs("encoder-decoder")
    mixing = model.get_submodule("decoder.layers.1.cross_attention.out_projection")
    with torch.no_grad():
        mixing.weight[:, : 12 // 3] = 0.0
    patches = patches_of(model, clean, corrupted, answers)
    restored = patches.restored(patches.heads["decoder.layers.1.cross_attention"])
    assert restored[0] == pytest.approx(0.0, abs=1e-4)
    assert abs(restored[1:]).max() > 1e-3


@pytest.mark.parametrize("name", _WITH_BLOCKS)
def test_direct_effects_make_the_logits_and_the_lens_ends_with_the_answer(name: str) -> None:
    model, clean, _, answers = _two_inputs(name)
    before = condition(model)
    effects = direct_effects(model, clean, answers)
    assert condition(model) == before
    assert effects.total == pytest.approx(_difference(model, clean, answers), abs=1e-4)
    with torch.no_grad():  # biases alone are what is left when nothing is biased
        for path, weight in model.named_parameters():
            if path.endswith("bias"):
                weight.zero_()
    effects = direct_effects(model, clean, answers)
    assert effects.biases == pytest.approx(0.0, abs=1e-4)
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
    answers = Answers(-1, 5, 7)
    effects = direct_effects(model, inputs, answers)
    stack = model.get_submodule("decoder")
    assert isinstance(stack, Stack)
    assert isinstance(stack.final_norm, nn.LayerNorm)
    seen: dict[str, Tensor] = {}
    norm, attention = stack.final_norm, model.get_submodule("decoder.layers.1.self_attention")
    handles = [
        norm.register_forward_pre_hook(lambda _m, args: seen.update(last=args[0])),
        attention.get_submodule("out_projection").register_forward_pre_hook(
            lambda _m, args: seen.update(merged=args[0])
        ),
    ]
    with torch.no_grad():
        model(*inputs)
        for handle in handles:
            handle.remove()
        last, merged = seen["last"][0, -1], seen["merged"][0, -1]
        scale = (last.var(correction=0) + norm.eps).sqrt()
        read = model.get_submodule("output").weight
        assert isinstance(read, Tensor)
        mixing = attention.get_submodule("out_projection").weight
        assert isinstance(mixing, Tensor)
        added = mixing[:, 4:8] @ merged[4:8]
        through = (added - added.mean()) / scale * norm.weight
        expected = float(through @ (read[5] - read[7]))
    assert effects.heads["decoder.layers.1.self_attention"][1] == pytest.approx(expected, abs=1e-4)
    with knocked_out(model, [KnockedPart("head", "decoder", 0, "self", 0)]):
        assert _difference(model, inputs, answers) != pytest.approx(effects.total, abs=1e-6)


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

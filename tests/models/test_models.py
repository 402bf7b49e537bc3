"""What must hold for every registered variant of every family."""

import pytest
import torch

from tests.anatomy.configurations import samples
from tests.fresh import some, spelled
from tests.models.variants import (
    SEQUENCE_FAMILIES,
    SMALL,
    TEXT_VARIANTS,
    TGT_WORDS,
    VIT_VARIANTS,
    S,
    T,
    text_batch,
    text_config,
    text_model,
    vit_model,
)
from tfm_core.choices.config import MODEL_CONFIGS
from tfm_core.choices.config.model import DEPTHS
from tfm_core.choices.config.shape import TextShape
from tfm_core.models.build import build_model
from tfm_core.probe.capture import capture

pytestmark = pytest.mark.quick

IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(2))


def capture_changes_nothing(model, *batch):
    """Weights of all attentions are recorded, in rows that sum to 1, or to 0 under a mask."""
    model.eval()
    expected = model(*batch)
    with capture(model) as cache:
        torch.testing.assert_close(model(*batch), expected, atol=1e-5, rtol=1e-4)
    weights = cache.of("weights")
    assert set(weights) == {
        name for name, _ in model.named_modules() if name.endswith("_attention")
    }
    for value in weights.values():
        sums = value.sum(-1)
        if any(getattr(module, "has_sink", False) for module in model.modules()):
            assert (sums < 1 + 1e-6).all()  # 1 where the others score much more
            assert (sums < 1).any()
            continue
        assert ((sums - 1).abs().lt(1e-5) | sums.eq(0)).all()
    model.train()


def texts(seed):
    return [(family, one) for family in SEQUENCE_FAMILIES for one in samples(family, seed=seed)]


def pictures(seed):
    return samples("vit", seed=seed)


@pytest.mark.parametrize(("family", "settings"), some(texts(0), texts), ids=spelled)
def test_a_capture_changes_no_text_model(family, settings):
    capture_changes_nothing(text_model(family, **settings), *text_batch())


@pytest.mark.parametrize("settings", some(pictures(0), pictures), ids=spelled)
def test_a_capture_changes_no_vit(settings):
    capture_changes_nothing(vit_model(**settings), IMAGES)


@pytest.mark.parametrize(
    ("family", "settings"), some(TEXT_VARIANTS, lambda _seed: TEXT_VARIANTS), ids=spelled
)
def test_every_parameter_of_a_text_model_gets_a_gradient_and_a_capture_changes_nothing(
    family, settings
):
    model = text_model(family, **settings)
    capture_changes_nothing(model, *text_batch())
    src, tgt = text_batch()
    logits = model(src, tgt)
    assert logits.shape == (2, T, TGT_WORDS)
    logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        is_read = "mask-transposed" not in settings.get("mistakes", "") or family != "decoder-only"
        if is_read or not name.startswith("src_embedding"):  # no source stands behind an answer
            assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("family", "shape", "expected"),
    [
        ("encoder-only", TextShape(17, 17, head="pooler", n_segments=2), (2, 12)),
        ("decoder-only", TextShape(17, 17, one_vocabulary=True, output_bias=False), (2, T, 17)),
        ("encoder-decoder", TextShape(17, 17, one_vocabulary=True), (2, T, 17)),
    ],
)
def test_published_ends_answer_and_every_parameter_gets_a_gradient(family, shape, expected):
    torch.manual_seed(0)
    config = MODEL_CONFIGS[family].parse({**SMALL, "norm_first": False})
    model = build_model(config, shape)
    src, tgt = text_batch()
    out = model(src.clamp(max=16), tgt.clamp(max=16))
    assert out.shape == expected
    out[..., 0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_two_sizes_of_one_vocabulary_cannot_be():
    with pytest.raises(ValueError, match="shared vocabulary cannot have 17 source and 19 target"):
        TextShape(17, 19, one_vocabulary=True)


@pytest.mark.parametrize("settings", some(VIT_VARIANTS, lambda _seed: VIT_VARIANTS), ids=spelled)
def test_every_parameter_of_a_vit_gets_a_gradient_and_a_capture_changes_nothing(settings):
    model = vit_model(**settings)
    capture_changes_nothing(model, IMAGES)
    logits = model(IMAGES)
    assert logits.shape == (2, 5)
    logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only", "recurrent"])
def test_future_tokens_do_not_change_past_logits(family):
    model = text_model(family).eval()
    src, tgt = text_batch()
    changed = tgt.clone()
    changed[0, 3] = 4 + (changed[0, 3] - 3) % (TGT_WORDS - 4)
    before, after = model(src, tgt), model(src, changed)
    torch.testing.assert_close(before[0, :3], after[0, :3])
    assert not torch.allclose(before[0, 3:], after[0, 3:])


@pytest.mark.parametrize("family", SEQUENCE_FAMILIES)
def test_padding_and_the_rest_of_the_batch_change_nothing(family):
    model = text_model(family).eval()
    src, tgt = text_batch()
    longer = torch.nn.functional.pad(src, (0, 6))
    torch.testing.assert_close(model(longer, tgt), model(src, tgt), atol=1e-5, rtol=1e-4)
    model = text_model(family).eval()
    src, tgt = text_batch()
    alone = model(src[1:, :4], tgt[1:, :3])
    torch.testing.assert_close(alone, model(src, tgt)[1:, :3], atol=1e-5, rtol=1e-4)


def test_an_encoder_without_positions_is_permutation_equivariant_and_with_them_is_not():
    src = text_batch()[0][:1]
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    for position, is_equivariant in (("none", True), ("sinusoidal", False), ("rotary", False)):
        model = text_model("encoder-only", position=position).eval()
        slots = torch.ones(1, S, dtype=torch.long)
        same = torch.allclose(model(src[:, order], slots), model(src, slots)[:, order], atol=1e-5)
        assert same == is_equivariant


def test_no_attention_falls_outside_the_window_but_of_every_nth_layer():
    model = text_model("encoder-decoder", window=1)
    with capture(model) as cache:
        model(*text_batch())
    weights = cache.of("weights")
    encoder = weights["encoder.layers.0.self_attention"]
    decoder = weights["decoder.layers.0.self_attention"]
    cross = weights["decoder.layers.0.cross_attention"]
    assert (encoder[1, :, :, 4:] == 0).all()
    assert (cross[1, :, :, 4:] == 0).all()
    assert (encoder[0].tril(-2) == 0).all()
    assert (decoder.triu(1) == 0).all()
    assert (decoder.tril(-2) == 0).all()
    for family in ("encoder-decoder", "encoder-only", "decoder-only"):
        depths = {name: 4 for name in DEPTHS if name in MODEL_CONFIGS[family].model_fields}
        model = text_model(family, window=1, full_every=2, **depths)
        with capture(model) as cache:
            model(*text_batch())
        for name, weights in cache.of("weights").items():
            if "self_attention" in name:
                is_full = int(name.split(".")[2]) % 2 == 1
                assert bool((weights[0].tril(-2) > 0).any()) == is_full, (family, name)
    """By layer_types of Gemma2Config (9B) and Gemma3TextConfig in Transformers 4.57."""
    two = text_config("decoder-only", window=4095, full_every=2).windows(42)
    three = text_config("decoder-only", window=1023, full_every=6).windows(26)
    assert two == (4095, 0) * 21
    assert [layer for layer, window in enumerate(three) if not window] == [5, 11, 17, 23]


@pytest.mark.parametrize("mistakes", ["", "no-output-projection", "sliced-heads"])
def test_a_gain_draws_queries_and_keys_alone_larger(mistakes):
    drawn = {}
    for gain in (1.0, 2.5):
        model = text_model("encoder-decoder", mistakes=mistakes, query_key_gain=gain)
        drawn[gain] = model.decoder.layers[0].cross_attention.in_projection.weight.chunk(3)
    for part, times in enumerate((2.5, 2.5, 1.0)):  # query, key, value
        torch.testing.assert_close(drawn[2.5][part], times * drawn[1.0][part])

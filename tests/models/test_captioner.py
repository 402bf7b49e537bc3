"""The captioner: a ViT's encoder and a text decoder, in every variant."""

import pytest
import torch

from tests.fresh import some, spelled
from tests.models.test_models import capture_changes_nothing
from tests.models.variants import (
    CAPTION_SHAPE,
    CAPTIONER_VARIANTS,
    SMALL,
    TGT_WORDS,
    T,
    caption_batch,
    captioner_model,
    vit_model,
)
from tfm_core.choices.config import CaptionerConfig
from tfm_core.data.vocabulary import EOS, PAD
from tfm_core.decoding import greedy
from tfm_core.models.build import build_captioner
from tfm_core.probe.capture import capture

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    "settings", some(CAPTIONER_VARIANTS, lambda _seed: CAPTIONER_VARIANTS), ids=spelled
)
def test_every_parameter_gets_a_gradient_and_a_capture_changes_nothing(settings):
    model = captioner_model(**settings)
    logits = model(*caption_batch())
    assert logits.shape == (2, T, TGT_WORDS)
    logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if name != "tgt_positions.table":  # its last rows are for longer captions
            assert parameter.grad.abs().sum() > 0, name
    capture_changes_nothing(model, *caption_batch())


@pytest.mark.parametrize("settings", [{}, {"stem": "patches", "position": "learned"}])
def test_it_reads_a_picture_as_the_vision_transformer_does(settings):
    """The same weights, by name, and the same memory as the ViT's encoder hands to its pooling."""
    vit = vit_model(**{"position": "sinusoidal-2d", "stem": "conv", "pooling": "mean", **settings})
    model = captioner_model(n_encoder_layers=2, **settings)
    of_vit = {k: v for k, v in vit.state_dict().items() if not k.startswith("head.")}
    rest = model.load_state_dict(of_vit, strict=False)
    assert not rest.unexpected_keys
    assert all(k.startswith(("tgt_", "decoder.", "output.")) for k in rest.missing_keys)
    images, _ = caption_batch()
    with capture(vit.eval()) as cache:
        vit(images)
    memory, mask = model.eval().encode(images)
    torch.testing.assert_close(memory.detach(), cache.of("output")["encoder"])
    assert mask is None


def test_words_know_the_picture_and_nothing_to_come_padding_changes_nothing():
    model = captioner_model().eval()
    images, tgt = caption_batch()
    changed = tgt.clone()
    changed[0, 3] = 4 + (changed[0, 3] - 3) % (TGT_WORDS - 4)
    before, after = model(images, tgt), model(images, changed)
    torch.testing.assert_close(before[0, :3], after[0, :3])
    assert not torch.allclose(before[0, 3:], after[0, 3:])
    model = captioner_model().eval()
    images, tgt = caption_batch()
    change = (model(images, tgt) - model(images.flip(-1), tgt)).abs().amax(-1)
    assert (change > 1e-4).all()
    model = captioner_model().eval()
    images, tgt = caption_batch()
    longer = torch.nn.functional.pad(tgt, (0, 2))
    expected = model(images, tgt)
    torch.testing.assert_close(model(images, longer)[:, :T], expected, atol=1e-5, rtol=1e-4)
    alone = model(images[1:], tgt[1:, :3])
    torch.testing.assert_close(alone, expected[1:, :3], atol=1e-5, rtol=1e-4)


def test_the_likeliest_words_are_written_to_the_end_of_patches_that_divide():
    model = captioner_model()
    images, _ = caption_batch()
    written = greedy(model, images, max_len=T)
    ended = ((written.ids == EOS).cumsum(1) - (written.ids == EOS).int()) > 0
    assert (written.ids[ended] == PAD).all()
    tgt_in = torch.cat([torch.ones(2, 1, dtype=torch.long), written.ids[:, :-1]], 1)
    best = model.eval()(images, tgt_in).argmax(-1)
    assert torch.equal(best[~ended], written.ids[~ended])
    assert not written.ids.is_floating_point()
    with pytest.raises(ValueError, match="patch_size 4 does not divide image_size 6"):
        build_captioner(CaptionerConfig.parse({**SMALL, "patch_size": 4}), CAPTION_SHAPE)

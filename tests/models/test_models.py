"""Models as built from configurations."""

from dataclasses import replace

import pytest
import torch

from tests.anatomy.configurations import samples
from tests.fresh import some, spelled
from tests.models.variants import (
    CAPTION_SHAPE,
    CAPTIONER_VARIANTS,
    SEQUENCE_FAMILIES,
    SMALL,
    SRC_WORDS,
    TEXT_VARIANTS,
    TGT_WORDS,
    VIT_VARIANTS,
    S,
    T,
    caption_batch,
    captioner_model,
    text_batch,
    text_config,
    text_model,
    vit_model,
)
from tfm_core.choices.config import MODEL_CONFIGS, CaptionerConfig, EncoderOnlyConfig
from tfm_core.choices.config.model import DEPTHS
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.choices.variants.stems import POOLINGS
from tfm_core.data.vocabulary import EOS, PAD
from tfm_core.decoding import greedy
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.layers.masks import causal_mask
from tfm_core.models.build import build_captioner, build_model, build_text
from tfm_core.models.ends import mean_of_tokens
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


def assert_all_learn(model, out, is_unread=lambda _name: False):
    """Every parameter gets a finite gradient, and one that is not zero unless it is not read."""
    out.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert is_unread(name) or parameter.grad.abs().sum() > 0, name


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
    is_blind = "mask-transposed" in settings.get("mistakes", "") and family == "decoder-only"
    # no source stands behind an answer
    assert_all_learn(model, logits, lambda name: is_blind and name.startswith("src_embedding"))


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
    assert_all_learn(model, out[..., 0])


def test_two_sizes_of_one_vocabulary_cannot_be():
    with pytest.raises(ValueError, match="shared vocabulary cannot have 17 source and 19 target"):
        TextShape(17, 19, one_vocabulary=True)


@pytest.mark.parametrize("settings", some(VIT_VARIANTS, lambda _seed: VIT_VARIANTS), ids=spelled)
def test_every_parameter_of_a_vit_gets_a_gradient_and_a_capture_changes_nothing(settings):
    model = vit_model(**settings)
    capture_changes_nothing(model, IMAGES)
    logits = model(IMAGES)
    assert logits.shape == (2, 5)
    assert_all_learn(model, logits)


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


@pytest.mark.parametrize(
    "settings", some(CAPTIONER_VARIANTS, lambda _seed: CAPTIONER_VARIANTS), ids=spelled
)
def test_every_parameter_gets_a_gradient_and_a_capture_changes_nothing(settings):
    model = captioner_model(**settings)
    logits = model(*caption_batch())
    assert logits.shape == (2, T, TGT_WORDS)
    # the last rows of the table are for longer captions
    assert_all_learn(model, logits, lambda name: name == "tgt_positions.table")
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


NEEDS_A_SOURCE = [
    ("encoder-decoder", {}),
    *[
        ("recurrent", {"cell": cell, "attention": attention})
        for cell in ("gru", "lstm")
        for attention in ("additive", "dot")
    ],
]


@pytest.mark.parametrize(("family", "settings"), NEEDS_A_SOURCE)
def test_an_empty_source_is_refused_in_a_sentence(family, settings):
    _src, tgt_in = text_batch()
    with pytest.raises(ValueError, match=r"source is empty.*at least one token"):
        text_model(family, **settings)(torch.empty(2, 0, dtype=torch.int64), tgt_in)


@pytest.mark.parametrize("family", ["encoder-only", "decoder-only"])
def test_an_empty_source_is_read_by_models_that_need_none(family):
    _src, tgt_in = text_batch()
    found = text_model(family).eval()(torch.empty(2, 0, dtype=torch.int64), tgt_in)
    assert found.shape[:2] == tgt_in.shape
    assert found[0].isfinite().all()


@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only", "decoder-only", "recurrent"])
def test_a_source_of_padding_alone_gives_finite_answers_and_gradients(family):
    src, tgt_in = text_batch()
    src[1] = 0
    model = text_model(family)
    found = model(src, tgt_in)
    assert found.isfinite().all()
    found.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_text_of_padding_alone_is_pooled_to_finite_answers_and_gradients(pooling):
    src, tgt_in = text_batch()
    shape = TextShape(SRC_WORDS, 7, 0, head=pooling, n_labels=3)
    model = build_text(text_config("encoder-only", pooling=pooling), shape).eval()
    whole = model(src, tgt_in)
    src[1] = 0
    found = model(src, tgt_in)
    torch.testing.assert_close(found[0], whole[0])
    assert found.isfinite().all()
    found.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_the_mean_of_padding_alone_is_zero():
    x, keep = torch.randn(2, 3, 5), torch.tensor([[True, True, False], [False] * 3])
    found = mean_of_tokens(x, keep)
    torch.testing.assert_close(found[0, 0], x[0, :2].mean(0))
    assert found[1].eq(0).all()


HEADS = ("mean", "cls")

N_WORDS, N_LABELS = 7, 3


def model(head, **settings):
    torch.manual_seed(0)
    config = EncoderOnlyConfig.parse({**SMALL, **settings})
    shape = TextShape(SRC_WORDS, N_WORDS, head=head, n_labels=N_LABELS)
    return build_text(config, shape).eval()


def test_padding_changes_nothing_and_a_mean_without_positions_sees_a_bag():
    for position in POSITIONS_OF_WORDS:
        for head in HEADS:
            read = model(head, position=position)
            src, tgt = text_batch()
            padded = torch.nn.functional.pad(src, (0, 5))
            torch.testing.assert_close(read(padded, tgt), read(src, tgt), rtol=1e-5, atol=1e-5)
            alone = read(src[1:, :4], tgt[1:])
            torch.testing.assert_close(alone, read(src, tgt)[1:], rtol=1e-5, atol=1e-5)
    src, tgt = text_batch()
    read = model("mean", position="none")
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    torch.testing.assert_close(read(src[:1, order], tgt[:1]), read(src[:1], tgt[:1]))


def test_one_answer_of_the_labels_is_given_whatever_was_asked_for():
    for head in HEADS:
        src, tgt = text_batch()
        read = model(head)
        assert read(src, tgt).shape == (2, 1, N_WORDS)
        assert torch.equal(read(src, tgt), read(src, tgt[:, :1]))
    for head in HEADS:
        shares = model(head)(*text_batch()).softmax(-1)
        assert (shares[..., : N_WORDS - N_LABELS] == 0).all()
        torch.testing.assert_close(shares.sum(-1), torch.ones(2, 1))


@pytest.mark.parametrize("head", HEADS)
def test_every_word_counts_and_every_parameter_learns(head):
    src, tgt = text_batch()
    read = model(head)
    before = read(src, tgt)
    for position in range(src.size(1)):
        changed = src.clone()
        changed[0, position] = changed[0, position] % (SRC_WORDS - 4) + 4
        if changed[0, position] != src[0, position]:
            assert not torch.equal(read(changed, tgt)[0], before[0])
    assert_all_learn(read, before[..., -N_LABELS:])


WORDS = 19


def small(pad_id):
    torch.manual_seed(0)
    known = ARCHITECTURES["gpt2-small"]
    shape = replace(known.shape, src_vocabulary=WORDS, tgt_vocabulary=WORDS, pad_id=pad_id)
    return build_model(known.model.replace(**SMALL, dropout=0.0), shape).eval()


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name.startswith("gpt2")])
def test_gpt2_has_no_padding_token(name):
    assert ARCHITECTURES[name].shape.pad_id is None
    assert TextShape(WORDS, WORDS).pad_id == 0


@torch.no_grad()
def test_logits_with_token_0_are_those_without_any_padding_mask():
    model = small(None)
    ids = torch.randint(1, WORDS, (2, 7))
    ids[0, 2] = ids[1, 0] = 0
    x = model.positions(model.tgt_embedding(ids))
    expected = model.output(model.decoder(x, mask=causal_mask(7)))
    torch.testing.assert_close(model(ids[:, :0], ids), expected, atol=1e-6, rtol=1e-5)
    hidden = small(0)(ids[:, :0], ids)
    assert (hidden - expected)[0, 2:].abs().max() > 0.01  # where 0 is padding it is not read

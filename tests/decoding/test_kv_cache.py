"""Cached keys and values: the same logits as reading the whole text again, and sooner."""

import dataclasses
import sys

import pytest
import torch

from tests.anatomy.configurations import samples
from tests.fresh import some, spelled
from tests.models.variants import (
    CAPTIONER_VARIANTS,
    SRC_WORDS,
    TEXT_VARIANTS,
    TGT_WORDS,
    caption_batch,
    captioner_model,
    text_batch,
    text_model,
)
from tfm_core.choices.mistakes import make
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.decoding import beam_steps, greedy, reading, sampled_steps
from tfm_core.decoding.kv_cache import CHUNK, CachedDecoder, ReadPrompt, supports_cache
from tfm_core.decoding.single_token import MIN_KEYS, SingleTokenAttention
from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.models import build_stack
from tfm_core.probe.capture import capture

LONG = 6
READING = sys.modules["tfm_core.decoding.reading"]  # the package calls a function that
FAMILIES = ["encoder-decoder", "decoder-only", "captioner"]
ALL = [*TEXT_VARIANTS, *(("captioner", settings) for settings in CAPTIONER_VARIANTS)]


def usual(every, families=FAMILIES):
    """Return the cases of these families that never read what comes later."""
    return [
        (family, s)
        for family, s in every
        if family in families
        and not {"no-causal-mask", "mask-transposed"} & {*s.get("mistakes", "").split(",")}
    ]


def drawn(seed, families=FAMILIES):
    return usual([(f, s) for f in families for s in samples(f, seed=seed)], families)


def drawn_alone(seed):
    return drawn(seed, ["decoder-only"])


ALONE = some(usual(ALL, ["decoder-only"]), drawn_alone, n=4)
LONG_WRITERS = [
    *(
        (family, {"position": position, "window": window, "max_len": 2 * CHUNK})
        for family in ("encoder-decoder", "decoder-only")
        for position in POSITIONS_OF_WORDS
        for window in (0, 3)
    ),
    ("captioner", {"text_position": "sinusoidal"}),
]


@pytest.fixture(autouse=True)
def _unwritten_memory_is_nan():
    torch.use_deterministic_algorithms(True)  # which fills what ``empty`` returns
    assert torch.empty(1).isnan()
    yield
    torch.use_deterministic_algorithms(False)


def made(family, settings):
    if family == "captioner":
        return captioner_model(**settings).eval(), caption_batch()[0]
    return text_model(family, **settings).eval(), text_batch()[0]


def texts(n=2):
    """Ids of two texts, the second of which ends and is padded."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(4, TGT_WORDS, (n, LONG), generator=generator)
    ids[-1, 4:] = PAD
    return ids


def again(model, src, ids):
    """Logits for what follows ids, everything read anew."""
    tgt_in = torch.cat([ids.new_full((len(ids), 1), BOS), ids], 1)
    return model(src.expand(len(ids), *src.shape[1:]), tgt_in)[:, -1]


@torch.no_grad()
@pytest.mark.parametrize(("family", "settings"), some(usual(ALL), drawn), ids=spelled)
def test_cached_keys_give_the_logits_of_the_whole_text(family, settings):
    model, src = made(family, settings)
    ids, next_logits = texts(), reading(model, src)
    assert supports_cache(model)
    for length in (0, 1, 2, 4, 5, LONG):
        found = next_logits(ids[:, :length])
        open_ones = slice(None) if length <= 4 else slice(0, 1)  # after an end nothing is read
        torch.testing.assert_close(
            found[open_ones], again(model, src, ids[:, :length])[open_ones], atol=2e-5, rtol=1e-4
        )


@torch.no_grad()
@pytest.mark.parametrize(
    "settings",
    [{**s, "max_len": 2 * CHUNK} for _family, s in ALONE]
    + [{"window": 3, "position": "rotary", "qk_norm": True, "n_kv_heads": 1, "sink": "learned"}],
    ids=spelled,
)
@pytest.mark.parametrize("length", [1, 2, 5, CHUNK + 3])
def test_a_text_that_was_read_already_goes_on_as_if_it_were_read_anew(settings, length):
    model, src = text_model("decoder-only", **settings).eval(), torch.zeros(1, 0, dtype=torch.int64)
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
    ids = torch.randint(4, TGT_WORDS, (2, length + 2))
    begun = torch.cat([ids.new_full((2, 1), BOS), ids[:, :length]], 1)
    with capture(model, only={"key", "value"}) as cache:
        model.read(begun[:, :0], begun)
    layers = list(zip(cache.of("key").values(), cache.of("value").values(), strict=True))
    next_logits = reading(model, src, prompt=ReadPrompt(ids[:, :length], layers))
    for n in range(length, length + 3):
        expected = again(model, begun[:, :0], ids[:, :n])
        torch.testing.assert_close(next_logits(ids[:, :n]), expected, atol=2e-4, rtol=1e-3)


def test_a_position_kind_that_cannot_be_cached_is_refused(monkeypatch):
    kind = dataclasses.replace(POSITIONS_OF_WORDS["alibi"], layer="torch.nn:Identity", init_args=())
    monkeypatch.setattr(build_stack, "POSITIONS", {"alibi": kind})
    with pytest.raises(TypeError, match=r"torch\.nn:Identity must extend Relative"):
        text_model("decoder-only", position="alibi")


@torch.no_grad()
@pytest.mark.parametrize(
    ("mistake", "n", "bias"),
    [
        (None, 1, True),
        (None, 3, False),
        ("no-output-projection", 3, True),
        ("sliced-heads", 1, False),
        ("no-scale", 3, False),
    ],
)
def test_an_attention_laid_out_for_single_tokens_computes_what_the_layer_does(mistake, n, bias):
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, 3, bias=bias).eval()
    make([] if mistake is None else [mistake], layer)
    x, added = torch.randn(5, n, 12), torch.randn(5, 3, n, n)
    quick = SingleTokenAttention(layer)
    torch.testing.assert_close(quick(x), layer(x))
    found = quick(x, relative=lambda q, k: (q, k, added.flatten(0, 1)))
    torch.testing.assert_close(found, layer(x, relative=lambda q, k: (q, k, added)))


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_go_on_from_any_row_and_padding_behind_an_end_masks_nothing(family):
    model, src = made(family, {})
    one, ids = src[:1], texts(4)
    next_logits = reading(model, one)
    next_logits(ids[:1, :0])
    next_logits(ids[:, :1], torch.tensor([0, 0, 0, 0]))
    chosen = torch.tensor([3, 1, 1])
    grown = torch.cat([ids[chosen, :1], ids[:3, 1:2]], 1)
    torch.testing.assert_close(
        next_logits(grown, chosen), again(model, one, grown), atol=2e-5, rtol=1e-4
    )
    model, src = made(family, {})
    ids = texts().clamp(min=4)
    for held, is_full in (([EOS, PAD, PAD], True), ([PAD, 7, 5], False)):
        ids[1, 2:5] = torch.tensor(held)
        encoded = model.encode(src[:1]) if hasattr(model, "encode") else None
        cached = CachedDecoder(model, src[:1], encoded)
        for length in range(LONG):
            found = cached(ids[:, :length])
        asked = slice(0, 1) if is_full else slice(None)  # behind an end nobody asks
        assert cached.is_full == is_full
        torch.testing.assert_close(
            found[asked], again(model, src[:1], ids[:, :length])[asked], atol=2e-5, rtol=1e-4
        )


@torch.no_grad()
@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("family", [*FAMILIES, "recurrent"])
def test_a_row_takes_its_source_along(family, is_cached, monkeypatch):
    if not is_cached:
        monkeypatch.setattr(READING, "supports_cache", lambda model: False)
    model, src = made(family, {})
    ids, next_logits = texts(), reading(model, src)
    next_logits(ids[:, :1])
    chosen = torch.tensor([1])
    found = next_logits(ids[chosen, :3], chosen)
    torch.testing.assert_close(
        found, again(model, src[chosen], ids[chosen, :3]), atol=2e-5, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("family", "settings", "haste"),
    [
        ("encoder-decoder", {"position": "learned"}, 0.5),
        ("decoder-only", {"position": "rotary"}, 0.5),
        ("recurrent", {}, 1.5),
    ],
)
def test_texts_that_ended_are_read_no_more_and_the_others_stay_the_same(
    family, settings, haste, monkeypatch
):
    model = text_model(family, **settings).eval()
    with torch.no_grad():
        model.output.weight *= 3  # an untrained model is sure of nothing
        model.output.bias[EOS] += haste
    generator = torch.Generator().manual_seed(2)
    src = torch.randint(4, SRC_WORDS, (13, 7), generator=generator)
    src[::3, 5:] = PAD
    read, usual = [], READING.reading

    def noting(model, src):
        next_logits = usual(model, src)
        return lambda ids, parents=None: read.append(len(ids)) or next_logits(ids, parents)

    monkeypatch.setattr(sys.modules["tfm_core.decoding.greedy"], "reading", noting)
    found = greedy(model, src, max_len=29)
    assert min(read) < max(read) == 13
    for row, one in enumerate(src):
        alone = greedy(model, one[None], max_len=29)
        length = alone.ids.size(1)
        assert torch.equal(found.ids[row, :length], alone.ids[0])
        assert not found.ids[row, length:].any()
        torch.testing.assert_close(
            found.confidence[row, :length], alone.confidence[0], atol=2e-5, rtol=1e-4
        )


@torch.no_grad()
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
def test_cached_keys_give_them_in_half_precision_too(family):
    model, src = made(family, {"position": "rotary"})
    ids = texts()[:1].expand(2, -1)
    with torch.autocast("cpu", torch.bfloat16):
        next_logits = reading(model, src)
        for length in range(LONG):
            found = next_logits(ids[:, :length]).softmax(-1)
    exact = again(model, src, ids[:, :length]).softmax(-1)
    torch.testing.assert_close(found, exact, atol=0.02, rtol=0.0)


@torch.no_grad()
@pytest.mark.parametrize(("family", "settings"), LONG_WRITERS)
def test_a_text_that_outgrows_the_cache_has_the_logits_of_the_whole(family, settings):
    model, src = made(family, settings)
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(4, TGT_WORDS, (2, CHUNK + 5), generator=generator)
    next_logits = reading(model, src)
    for length in range(ids.size(1)):
        found = next_logits(ids[:, :length])
        if length in (3, MIN_KEYS - 2, MIN_KEYS - 1, MIN_KEYS, CHUNK - 1, CHUNK, CHUNK + 4):
            torch.testing.assert_close(
                found.log_softmax(-1),
                again(model, src, ids[:, :length]).log_softmax(-1),
                atol=3e-5,
                rtol=1e-4,
            )


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        *((family, {}) for family in FAMILIES),
        ("decoder-only", {"position": "alibi", "window": 2}),
        ("decoder-only", {"window": 2, "full_every": 2}),
        ("encoder-decoder", {"position": "t5-bias"}),
    ],
)
def test_greedy_samples_and_beams_are_the_same_with_and_without(family, settings, monkeypatch):
    model, src = made(family, settings)

    def written():
        *_, sampled = sampled_steps(model, src[:1], max_len=LONG, seeds=(1, 2, 3))
        *_, beams = beam_steps(model, src[:1], max_len=LONG, width=5, alpha=0.6)
        return greedy(model, src, max_len=LONG).ids, sampled.ids, [one.ids for one in beams]

    cached = written()
    monkeypatch.setattr(READING, "supports_cache", lambda model: False)
    plain = written()
    assert torch.equal(cached[0], plain[0])
    assert torch.equal(cached[1], plain[1])
    assert cached[2] == plain[2]


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_reads_one_token(family, monkeypatch):
    model, src = made(family, {})
    read = []
    embedded = CachedDecoder._embedded

    def noting(self, ids):
        x, tokens = embedded(self, ids)
        read.append(x.size(1))
        return x, tokens

    monkeypatch.setattr(CachedDecoder, "_embedded", noting)
    greedy(model, src, max_len=4)
    assert read[1:] == [1] * (len(read) - 1)
    assert len(read) > 1


def test_a_slid_context_and_a_watched_model_are_read_anew():
    model, _src = made("decoder-only", {})
    nothing, ids = torch.zeros(2, 0, dtype=torch.int64), texts()
    with torch.no_grad():
        next_logits = reading(model, nothing, context=4)
        for length in range(7):
            seen = ids[:, :length][:, max(0, length - 3) :]
            torch.testing.assert_close(
                next_logits(ids[:, :length]), again(model, nothing, seen), atol=2e-5, rtol=1e-4
            )
    model, _src = made("encoder-decoder", {})
    assert not supports_cache(model.train())
    model.eval()
    block = model.decoder.layers[0]
    handle = block.cross_attention.register_forward_hook(lambda *_args: None)
    assert not supports_cache(model)
    handle.remove()
    assert supports_cache(model)
    block.join = lambda x, norm, sublayer, skip: x
    assert not supports_cache(model)
    del block.join
    attention, block.self_attention = block.self_attention, torch.nn.Identity()
    assert not supports_cache(model)
    block.self_attention = attention
    with recorder.recording(Watching()):
        assert not supports_cache(model)
    assert supports_cache(model)


@pytest.mark.parametrize(
    "settings", [{"mistakes": "no-causal-mask"}, {"mistakes": "mask-transposed"}]
)
def test_without_the_causal_mask_nothing_is_cached(settings):
    assert not supports_cache(made("encoder-decoder", settings)[0])


class Watching:
    """Takes what layers record, and forgets it."""

    def wants(self, module, kinds):
        """Ask for everything."""
        return True

    def record(self, module, tensors):
        """Keep nothing."""

"""Variants as records: their layers, their fields, their schedules."""

import copy
import pickle
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import pytest
import torch
import torch.nn.functional as F

from tests.models.variants import caption_batch, captioner_model, text_batch, vit_model
from tfm_core import sentences
from tfm_core.choices.config import EncoderOnlyConfig
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.record import Registry, UnknownVariant, Variant, resolve
from tfm_core.choices.variants.stems import POOLINGS, STEMS
from tfm_core.choices.variants.training import OPTIMISERS, PRECISIONS, SCHEDULES, WSD
from tfm_core.layers.feed_forward import FeedForward, make_norm
from tfm_core.models.build import build_text

pytestmark = pytest.mark.quick


def differ(one, other):
    """Of outputs of models with the same seed, so with the same weights where both have them."""
    return not torch.allclose(one, other, atol=1e-5)


def test_any_two_variants_differ_by_layer_and_by_equation():
    for one, other in [*combinations(NORMS, 2)]:
        x = torch.randn(2, 5, 11, generator=torch.Generator().manual_seed(1)) + 0.5
        assert differ(make_norm(one, 11)(x), make_norm(other, 11)(x))
    for one, other in [*combinations(ACTIVATIONS, 2)]:
        x = torch.randn(2, 5, 11, generator=torch.Generator().manual_seed(1))
        layers = []
        for name in (one, other):
            torch.manual_seed(0)
            layers.append(FeedForward(11, 13, activation=name))
        layers[1].load_state_dict(layers[0].state_dict(), strict=False)
        assert differ(*(layer(x) for layer in layers))
    for one, other in [*combinations(STEMS, 2)]:
        pictures, words = caption_batch()
        assert differ(vit_model(stem=one)(pictures), vit_model(stem=other)(pictures))
        outputs = [captioner_model(stem=name)(pictures, words) for name in (one, other)]
        assert differ(*outputs)
    for one, other in [*combinations(POOLINGS, 2)]:
        pictures, _ = caption_batch()
        models = [vit_model(pooling=name, position="none") for name in (one, other)]
        models[1].load_state_dict(models[0].state_dict(), strict=False)
        assert differ(*(model(pictures) for model in models))
        texts = [label_model(name) for name in (one, other)]
        texts[1].load_state_dict(texts[0].state_dict())
        assert differ(*(model(*text_batch())[..., -3:] for model in texts))
    for name in POOLINGS:
        model, (src, tgt) = label_model(name), text_batch()
        longer = F.pad(src, (0, 3))
        torch.testing.assert_close(model(longer, tgt), model(src, tgt), atol=1e-6, rtol=1e-5)
    for registry in [NORMS, ACTIVATIONS, STEMS, POOLINGS]:
        said = [
            each.latex and each.latex(7, "e")
            if registry is NORMS
            else (each.latex("a", "b"), each.bend)
            if registry is ACTIVATIONS
            else each.latex
            for each in registry.values()
        ]
        assert len(set(said)) == len(said)


def label_model(pooling):
    torch.manual_seed(0)
    config = EncoderOnlyConfig(d_model=12, n_heads=3, d_ff=11, pooling=pooling)
    return build_text(config, TextShape(17, 19, head=pooling, n_labels=3)).eval()


def test_the_code_of_an_activation_a_norm_and_a_pooling_makes_its_layer():
    for name in ACTIVATIONS:
        torch.manual_seed(0)
        ff = FeedForward(11, 13, activation=name)
        x, chosen = torch.randn(2, 5, 11), ACTIVATIONS[name]
        hidden = eval(
            chosen.code.format(up="ff.up(x)", gate="ff.gate(x)"), {"F": F, "ff": ff, "x": x}
        )
        torch.testing.assert_close(ff.down(hidden), ff(x))
        n_matrices = sum(parameter.ndim == 2 for parameter in ff.parameters())
        assert n_matrices == 2 + chosen.is_gated
    for eps in [1e-5, 0.03]:
        for name in [name for name, norm in NORMS.items() if norm.code]:
            names = {"torch": torch, "nn": torch.nn, "D_MODEL": 11}
            made = eval(NORMS[name].code(eps), names)
            assert repr(made) == repr(make_norm(name, 11, eps))
    for name in POOLINGS:
        chosen, x = POOLINGS[name], torch.randn(2, 5, 11)
        pool = resolve(chosen.layer)
        keep = torch.arange(5) < torch.tensor([[5], [3]])
        *lines, last = (line.format(x="x", keep="keep") for line in chosen.of_words)
        names = {"x": x, "keep": keep}
        exec("\n".join(lines), names)
        torch.testing.assert_close(eval(last, names), pool(x, keep))
        torch.testing.assert_close(
            eval(chosen.of_patches.format(x="x"), names), pool(x, None)[:, 0]
        )


def test_an_unknown_variant_is_a_sentence_and_no_layer():
    with pytest.raises(UnknownVariant, match="There is no norm named 'batch'; there are layernorm"):
        make_norm("batch", 11)
    with pytest.raises(UnknownVariant, match="There is no activation named 'bent'; there are relu"):
        FeedForward(11, 13, activation="bent")
    with pytest.raises(ValueError, match="head is 'max'; choose from tokens, pooler, cls"):
        TextShape(7, 7, head="max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheese(Variant):
    holes: int
    layer: str
    smell: str | None = field(init=False)


WHOLE = {"name": "brie", "source": "Meaux", "holes": 0, "layer": "math:sqrt"}

WORDS = "## Cheese.brie\n- label: Brie\n- help: Soft.\n\n## Cheese.edam\n- label: Edam\n"


def test_records_that_lack_a_part_or_words_or_a_name_of_their_own_are_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sentences, "CONTENT_DIR", tmp_path)
    (tmp_path / "en" / "choices").mkdir(parents=True)
    (tmp_path / "en" / "choices" / "variants.md").write_text(WORDS)
    for part in WHOLE:
        parts = {name: value for name, value in WHOLE.items() if name != part}
        with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{part}'"):
            Cheese(**parts)
    with pytest.raises(ValueError, match="Cheese 'brie' lacks its source: every part of a variant"):
        Cheese(**{**WHOLE, "source": ""})
    with pytest.raises(KeyError, match="help"):
        Cheese(**{**WHOLE, "name": "edam"})
    with pytest.raises(KeyError, match=r"Cheese\.gouda"):
        Cheese(**{**WHOLE, "name": "gouda"})
    brie = Cheese(**WHOLE)
    assert (brie.label, brie.help, brie.smell) == ("Brie", "Soft.", None)
    assert copy.deepcopy(brie) == brie == pickle.loads(pickle.dumps(brie))
    assert resolve(brie.layer)(9.0) == 3.0
    with pytest.raises(UnknownVariant, match=r"There is no cheese named 'edam'; there are brie\."):
        Registry("cheese", brie)["edam"]
    with pytest.raises(ValueError, match="two variants of cheese named 'brie'"):
        Registry("cheese", brie, brie)


@pytest.mark.parametrize(
    "registry",
    [OPTIMISERS, SCHEDULES, PRECISIONS, NORMS, ACTIVATIONS, STEMS, POOLINGS],
    ids=lambda each: each.subject,
)
def test_every_variant_stands_under_its_own_name_with_help_and_source(registry):
    for name, variant in registry.items():
        assert name == variant.name
        assert variant.help.endswith(".")
        assert variant.source


@pytest.mark.parametrize("name", ["cosine", "linear", "wsd"])
def test_a_schedule_that_falls_to_zero_would_be_there_one_step_after_the_last(name):
    share = SCHEDULES[name].share
    assert share(1001, 100, 1000) == pytest.approx(0, abs=1e-9)
    assert 0 < share(1000, 100, 1000) < 0.01, "the last step still moves a little"


def test_warm_up_stable_decay_rises_stays_and_cools_in_the_last_fifth():
    rates = [WSD.share(step, 100, 1000) for step in range(1, 1001)]
    assert rates[49] == 0.5
    assert set(rates[99:800]) == {1.0}
    assert rates[899] == pytest.approx(0.5, abs=0.01)
    falls = [before - after for before, after in pairwise(rates[800:])]
    assert max(falls) == pytest.approx(min(falls)), "linearly"


@pytest.mark.parametrize(("warm", "total"), [(1, 1), (3, 2), (950, 1000), (1, 4)])
def test_warm_up_stable_decay_never_jumps_however_short_or_long_its_parts(warm, total):
    rates = [WSD.share(step, warm, total) for step in range(1, total + 1)]
    assert all(0 < rate <= 1 for rate in rates)
    peak = rates.index(max(rates))
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)

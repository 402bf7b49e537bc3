"""Positions, recurrent cells and families as variants, and their words."""

import dataclasses
import itertools
from itertools import combinations
from operator import attrgetter

import pytest
import torch

from tests.models.variants import SMALL, text_batch, text_model, vit_model
from tfm_core.choices.config import MODEL_CONFIGS, TASK_FACTS, CaptionTaskConfig, ConfigError
from tfm_core.choices.variants.forms import FAMILIES
from tfm_core.choices.variants.positions import (
    ALIBI,
    LEARNED,
    POSITIONS,
    POSITIONS_OF_WORDS,
    ROTARY,
)
from tfm_core.choices.variants.record import Registry, UnknownVariant, resolve
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.tasks import LANGUAGES, UNITS
from tfm_core.data import caption_words
from tfm_core.data.caption_words import LARGE, PlacedDigit
from tfm_core.data.user_data.tokens import learn_from_text
from tfm_core.models.build import BUILDERS
from tfm_core.models.build_stack import added_positions

IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(2))

VALUES = {
    "length": 7,
    "side": 2,
    "d_model": 12,
    "d_head": 6,
    "n_heads": 2,
    "is_causal": False,
    "rope_theta": 100.0,
    "rope_scaling": "linear",
    "rope_factor": 2.0,
    "rope_original_len": 5,
}

NAME = attrgetter("name")


def made(kind):
    return resolve(kind.layer)(**{name: VALUES[name] for name in kind.init_args})


def with_equal_weights(models):
    """The models, with the weights of the first in all that they share."""
    weights = models[0].state_dict()
    for model in models:
        assert not model.load_state_dict(weights, strict=False).unexpected_keys
    return [model.eval() for model in models]


def answers_of_words(family):
    models = with_equal_weights([text_model(family, position=name) for name in POSITIONS_OF_WORDS])
    return dict(zip(POSITIONS_OF_WORDS, (model(*text_batch()) for model in models), strict=True))


@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only", "decoder-only"])
def test_any_two_kinds_give_different_answers_to_words(family):
    with torch.no_grad():
        for (a, one), (b, other) in itertools.combinations(answers_of_words(family).items(), 2):
            assert (one - other).abs().max() > 1e-4, (a, b)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_any_two_kinds_give_different_answers_to_pictures(pooling):
    models = with_equal_weights([vit_model(position=name, pooling=pooling) for name in POSITIONS])
    with torch.no_grad():
        answers = dict(zip(POSITIONS, (model(IMAGES) for model in models), strict=True))
    for (a, one), (b, other) in itertools.combinations(answers.items(), 2):
        assert (one - other).abs().max() > 1e-4, (a, b)


def test_records_say_what_acts_where_and_is_trained_or_generated():
    for kind in [k for k in POSITIONS.values() if not k.is_inside]:
        x = torch.randn(3, VALUES["length"], VALUES["d_model"])
        out = made(kind)(x)
        assert out.shape == x.shape
        assert torch.equal(out, x) == (kind.acts_on == "nothing")
    for kind in [k for k in POSITIONS.values() if k.is_inside]:
        q, k = torch.randn(2, 3, VALUES["n_heads"], 5, VALUES["d_head"])
        turned_q, turned_k, bias = made(kind)(q, k)
        turns = kind.acts_on == "queries and keys"
        assert (not torch.equal(turned_q, q)) == (not torch.equal(turned_k, k)) == turns
        assert (bias is None) == turns
        if bias is not None:
            assert bias.expand(3, VALUES["n_heads"], 5, 5).any()
    for kind in POSITIONS.values():
        assert kind.is_learned == any(True for _ in made(kind).parameters())
    for kind in POSITIONS.values():
        for function in kind.functions:
            assert function.source.startswith((f"def {function.name}(", f"class {function.name}("))


@pytest.mark.parametrize("kind", [k for k in POSITIONS.values() if k.is_inside], ids=NAME)
def test_a_query_knows_where_it_stands_without_those_around_it(kind):
    q, k = torch.randn(2, 3, VALUES["n_heads"], 5, VALUES["d_head"])
    at = torch.tensor([[4, 1], [0, 3], [2, 2]])
    rows = at[:, None, :, None].expand(-1, VALUES["n_heads"], -1, -1)
    few = q.gather(2, rows.expand(-1, -1, -1, q.size(-1)))
    layer = made(kind)
    all_q, all_k, all_bias = layer(q, k)
    some_q, some_k, some_bias = layer(few, k, at)
    torch.testing.assert_close(some_q, all_q.gather(2, rows.expand_as(few)))
    torch.testing.assert_close(some_k, all_k)
    if all_bias is not None:
        expected = all_bias.expand(3, VALUES["n_heads"], 5, 5)
        torch.testing.assert_close(some_bias, expected.gather(2, rows.expand(-1, -1, -1, 5)))


def test_kinds_are_refused_by_their_rules_or_names_or_for_a_part_that_lacks():
    refused = {kind.name: kind.impossible(9, 3) for kind in POSITIONS.values()}
    assert any(refused.values())
    for name, sentence in refused.items():
        if sentence is not None:
            with pytest.raises(ConfigError) as caught:
                MODEL_CONFIGS["vit"].parse({**SMALL, "d_model": 9, "position": name})
            assert [p.sentence for p in caught.value.problems if p.field == "position"] == [
                sentence
            ]
    sentence = "^There is no position kind named 'spiral'; there are none, "
    with pytest.raises(UnknownVariant, match=sentence):
        added_positions("spiral", length=3, d_model=4)
    with pytest.raises(ConfigError, match="position is 'spiral'; choose from 'none', "):
        MODEL_CONFIGS["vit"].parse({"position": "spiral"})
    with pytest.raises(ValueError, match="two variants of position kind named 'rotary'"):
        Registry("position kind", ROTARY, ROTARY)
    for kind, parts, sentence in [
        (ROTARY, {"source": ""}, "'rotary' lacks its source"),
        (ROTARY, {"inside": None}, "'rotary' acts on queries and keys and lacks its inside part"),
        (ROTARY, {"added": LEARNED.added}, "acts on queries and keys and must not have added part"),
        (LEARNED, {"added": None}, "'learned' acts on embeddings and lacks its added part"),
        (LEARNED, {"acts_on": "nothing"}, "acts on nothing and must not have added part"),
        (ROTARY, {"acts_on": "scores"}, "acts on scores: inside.turn must be given for queries"),
        (ALIBI, {"acts_on": "queries and keys"}, "inside.turn must be given for queries and keys"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            dataclasses.replace(kind, **parts)
    fields = [field for field in dataclasses.fields(ROTARY) if field.init]
    parts = {field.name: getattr(ROTARY, field.name) for field in fields}
    del parts["style"]
    with pytest.raises(TypeError, match="style"):
        type(ROTARY)(**parts)


def test_any_two_variants_differ_and_a_cell_has_its_gates_and_equation():
    for setting, one, other in [
        *(("cell", *pair) for pair in combinations(CELLS, 2)),
        *(("attention", *pair) for pair in combinations(ALIGNMENT_SCORES, 2)),
    ]:
        models = [text_model("recurrent", **{setting: name}) for name in (one, other)]
        shared = {name: value.shape for name, value in models[1].state_dict().items()}
        weights = {
            name: value
            for name, value in models[0].state_dict().items()
            if shared.get(name) == value.shape
        }
        models[1].load_state_dict(weights, strict=False)
        outputs = [model(*text_batch()) for model in models]
        assert not torch.allclose(*outputs, atol=1e-5)
    for name in CELLS:
        cell = CELLS[name]
        step = resolve(cell.step)(5, 7)
        assert step.weight_ih.shape == (cell.n_gates * 7, 5)
        assert isinstance(step(torch.ones(2, 5)), tuple) is cell.has_memory
        assert resolve(cell.sequence).__name__ == cell.class_name
    for registry in (CELLS, ALIGNMENT_SCORES):
        assert len({each.latex for each in registry.values()}) == len(registry)


def test_every_family_has_settings_a_builder_and_tasks() -> None:
    assert set(FAMILIES) == set(MODEL_CONFIGS) == set(BUILDERS)
    for name, facts in TASK_FACTS.items():
        assert set(facts.families) <= set(FAMILIES), name


TEXT = "Alice’s cat sat.\nIt slept"


@pytest.mark.parametrize(
    ("name", "tokens"),
    [("words", ["Alice’s", "cat", "sat", ".", "\n", "It", "slept"]), ("characters", list(TEXT))],
)
def test_a_unit_cuts_a_text_and_loses_no_letter(name, tokens):
    cut = UNITS[name].cut(TEXT)
    assert cut == tokens
    assert "".join(cut).replace(" ", "") == TEXT.replace(" ", "")


def test_every_unit_and_every_language_has_its_own_words():
    cuts = {learn_from_text(unit, TEXT * 9) for unit in UNITS}
    assert len({tuple(cutter.cut_text(TEXT)) for cutter in cuts}) == len(UNITS)
    scene = [PlacedDigit(8, 0, 0), PlacedDigit(3, LARGE, 0)]
    captions = set()
    for name in LANGUAGES:
        config = CaptionTaskConfig(name="captions", language=name)
        words = caption_words.caption(scene, config).words
        assert set(words) <= set(caption_words.vocabulary(config).tokens)
        captions.add(words)
    assert len(captions) == len(LANGUAGES)

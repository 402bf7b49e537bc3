import re

import pytest

from tests.inspect.constructed import text_experiment, vit_experiment
from tests.training.test_loop import experiment
from tfm_core.choices.config import FAMILIES
from tfm_core.probe.labels import (
    KINDS,
    axes,
    kind_of,
    layer_of,
    modules_by_kind,
    patches_per_side,
    rows,
    written_tokens,
)

pytestmark = pytest.mark.quick

ITEM = {"src": ["forty", "two"], "tgt": ["4", "2", "0"]}
ENCODER, DECODER = "encoder.layers.0.self_attention", "decoder.layers.0.self_attention"
CROSS = "decoder.layers.0.cross_attention"


def experiment_of(family):
    if family == "captioner":
        return experiment("captioner", "captions")
    return vit_experiment() if family == "vit" else text_experiment(family)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_attention_has_a_kind_with_words_and_is_the_models(family):
    experiment = experiment_of(family)
    for name, modules in modules_by_kind(experiment).items():
        kind = KINDS[name]
        assert all(kind_of(experiment, module) is kind for module in modules)
        assert [layer_of(module) for module in modules] == list(range(len(modules)))
        assert all([kind.label, kind.help, kind.query, kind.key, kind.look_for])
    torch = pytest.importorskip("torch")
    from tfm_core.layers.attention import MultiHeadAttention
    from tfm_core.layers.recurrent import RecurrentAttention
    from tfm_core.training.setup import new_model

    experiment = experiment_of(family)
    with torch.device("meta"):
        model = new_model(experiment)
    attentions = (MultiHeadAttention, RecurrentAttention)
    built = {name for name, part in model.named_modules() if isinstance(part, attentions)}
    named = {name for names in modules_by_kind(experiment).values() for name in names}
    assert named == built


def test_queries_and_keys_are_the_tokens_that_each_attention_reads():
    source, target = ("forty", "two"), ("<bos>", "4", "2", "0")
    slots = (*source, "slot 3", "slot 4")  # 3 target tokens and <eos>
    for family, module, query, key in (
        ("encoder-decoder", ENCODER, source, source),
        ("encoder-decoder", DECODER, target, target),
        ("encoder-decoder", CROSS, target, source),
        ("decoder-only", DECODER, (*source, *target), (*source, *target)),
        ("encoder-only", ENCODER, slots, slots),
    ):
        found = axes(text_experiment(family), ITEM, module)
        assert (found.query, found.key) == (query, key)


def test_a_longer_source_needs_no_slots_and_no_attention_is_refused():
    item = {"src": ["a", "b", "c", "d", "e"], "tgt": ["a"]}
    assert axes(text_experiment("encoder-only"), item, ENCODER).query == ("a", "b", "c", "d", "e")
    for name in ["", "encoder.layers.0", "encoder.layers.x.self_attention", "a\nb"]:
        with pytest.raises(ValueError, match=re.escape("is not an attention module")):
            kind_of(text_experiment(), name)
    with pytest.raises(ValueError, match="Only a Vision Transformer has patches"):
        patches_per_side(text_experiment())


@pytest.mark.parametrize(("pooling", "first", "count"), [("mean", "1,1", 16), ("cls", "CLS", 17)])
def test_patches_are_named_by_row_and_column_behind_the_cls_token(pooling, first, count):
    found = axes(vit_experiment(pooling), {}, ENCODER)
    assert found.query[0] == first
    assert found.query[-3:] == ("4,2", "4,3", "4,4")
    assert found.shape == (count, count)
    assert patches_per_side(vit_experiment(pooling)) == 4


def test_rows_are_called_by_the_token_that_is_written():
    named = rows(text_experiment(), ITEM, CROSS)
    assert named.names == ("4", "2", "0", "<eos>")
    assert named.words[1] == "2: writes 2, after 4"
    assert named.title == "target token written"
    read = rows(text_experiment(), ITEM, CROSS, "read")
    assert read.names == ("<bos>", "4", "2", "0")
    assert read.words[0] == "1: <bos>, and writes 4"
    cut = {**ITEM, "is_cut": True}
    assert written_tokens(text_experiment(), cut, CROSS) == ("4", "2", "0", None)
    assert rows(text_experiment(), cut, CROSS).words[3] == "query 4: 0"
    named = rows(text_experiment("encoder-only"), ITEM, ENCODER, "written")
    assert named.words[1] == "2: writes 2, at two"
    assert named.names[:3] == ("4", "2", "0")
    experiment = text_experiment("decoder-only")
    written = written_tokens(experiment, ITEM, DECODER)
    assert written == (None, None, "4", "2", "0", "<eos>")
    assert rows(experiment, ITEM, DECODER).names == ("forty", "two", "<bos>", "4", "2", "0")
    assert rows(experiment, ITEM, DECODER, "written").names[1:4] == ("two", "4", "2")


@pytest.mark.parametrize("by", ["written", "read"])
def test_rows_that_write_nothing_are_called_by_what_is_read(by):
    named = rows(text_experiment(), ITEM, ENCODER, by)
    assert named.names == ("forty", "two")
    assert named.words == ("query 1: forty", "query 2: two")

"""What Build and the walk say of a model is true of it, for every family and kind of task."""

import re

from torch import nn

from tests.models.variants import SMALL, TEXT_FAMILIES, text_config
from tfm_core.choices.config import MODEL_CONFIGS
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.architectures import ARCHITECTURES, of_experiment
from tfm_core.models.build import build_model
from tfm_core.trace.equations import equations
from tfm_core.trace.parts import open_parts
from tfm_core.trace.shown import axis_words, topic_text
from tfm_core.trace.source.file import source_code
from tfm_core.trace.subject import by_shape
from tfm_core.trace.trace import trace

KNOWN = {
    **ARCHITECTURES,
    **{name: of_experiment(preset.experiment, name) for name, preset in PRESETS.items()},
}
LANGUAGE = [name for name, known in KNOWN.items() if not getattr(known.shape, "has_source", True)]


def parts(known):
    return open_parts(known.model, known.shape, src_len=known.src_len, tgt_len=known.tgt_len)


def said(known):
    """Every text of the parts of the picture, the generated file and the walk."""
    for one in parts(known).values():
        yield from (one.title, *one.rows)
    yield from (one.title for one in equations(known.model, known.shape).values())
    yield source_code(known.model, known.shape)
    looked = by_shape(known.model, known.shape, batch=1, src_len=7, tgt_len=11)
    axes = axis_words(looked.reader)
    for step in trace(looked):
        yield from (step.title, step.question.text, step.question.because)
        yield from (topic_text(topic) for topic in step.topics)
        for one in (*step.inputs, *step.outputs, *step.extra):
            yield one.label
            yield from (axes[axis] for axis in one.axes)


def test_the_parts_say_what_a_model_reads_and_its_cls_token():
    for name, reads in [
        ("transformer-base", ["Source ids", "Target ids, shifted right"]),
        ("bert-base", ["Token ids"]),
        ("gpt2-xl", ["Token ids"]),
        ("gpt-grammar", ["Token ids"]),
        ("gpt-text", ["Token ids"]),
        ("addition", ["Source, then target ids"]),
        ("sentiment", ["Token ids"]),
        ("masked-words", ["Token ids, some hidden"]),
        ("sort-at-once", ["Source ids, then empty slots"]),
        ("translate", ["Source ids", "Target ids, shifted right"]),
        ("translate-luong", ["Source ids", "Target ids, shifted right"]),
        ("captions", ["Target ids, shifted right"]),
        ("vit-h", []),
    ]:
        found = parts(KNOWN[name])
        assert [one.title for part, one in found.items() if part.endswith(" ids")] == reads
    config = MODEL_CONFIGS["encoder-only"].parse({**SMALL, "pooling": "cls"})
    found = open_parts(config, TextShape(17, 7, head="cls", n_labels=3), src_len=5)
    assert found["src ids"].title == "Token ids, CLS in front"
    assert found["pooling"].title == "Take the CLS token"


def test_language_models_have_no_source_and_one_pass_no_slots():
    for name in LANGUAGE:
        for text in said(KNOWN[name]):
            words = text.replace("There is no source", "")
            assert not re.search(r"\b(source|target)\b", words, re.IGNORECASE), text
    for name in ["sentiment", "masked-words", "sort-at-once", "bert-base"]:
        text = " ".join(said(KNOWN[name]))
        assert "appends it and runs again" not in text
        assert name == "sort-at-once" or not re.search(r"\bslots?\b", text)


def test_equations_and_ties_are_said_where_the_model_has_them():
    for family in TEXT_FAMILIES:
        for is_tied in [True, False]:
            for words in [(17, 19), (19, 19)]:
                config, shape = text_config(family, tie_embeddings=is_tied), TextShape(*words)
                model = build_model(config, shape)
                tables = [part.weight for part in model.modules() if isinstance(part, nn.Embedding)]
                truth = any(table is model.output.weight for table in tables)
                assert truth == (is_tied and (family != "encoder-only" or words[0] == words[1]))
                assert (r"E^\top" in equations(config, shape)["model"].latex) == truth
                assert ("tied" in source_code(config, shape)) == truth
                rows = open_parts(config, shape, src_len=7, tgt_len=5)["output"].rows
                assert ("the embedding’s matrix: tied" in rows) == truth
    for family, settings, keys in [
        ("decoder-only", {}, r"_{j \le i}"),
        ("decoder-only", {"window": 2}, r"_{i - 2 \le j \le i}"),
        ("encoder-only", {}, "_{j}"),
        ("encoder-only", {"window": 2}, r"_{|i - j| \le 2}"),
        ("encoder-decoder", {}, r"only } j \le i"),
        ("encoder-decoder", {"window": 2}, r"only } |i - j| \le 2"),
    ]:
        latex = equations(text_config(family, **settings), TextShape(17, 19))["attention"].latex
        assert keys in latex

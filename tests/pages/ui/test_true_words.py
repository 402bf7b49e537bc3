"""What Build and the walk say of a model is true of it, for every family and kind of task."""

import dataclasses
import re

import pytest
import torch
from torch import nn

from tests.inspect.diagram.test_graph import LOOK
from tests.models.variants import SMALL, TEXT_FAMILIES, text_config
from tfm_core.config import MODEL_CONFIGS
from tfm_core.config.shape import CaptionShape, ImageShape, TextShape
from tfm_core.facts.architectures import ARCHITECTURES, of_experiment
from tfm_core.inspect.diagram.graph import diagram
from tfm_core.inspect.equations.model import equations
from tfm_core.inspect.source.file import source_code
from tfm_core.inspect.walk.build import walk
from tfm_core.inspect.walk.steps import axis_words
from tfm_core.inspect.walk.subject import by_shape
from tfm_core.inspect.walk.topics import topic_text
from tfm_core.models.build import build_model
from tfm_core.presets import PRESETS

KNOWN = {
    **ARCHITECTURES,
    **{name: of_experiment(preset.experiment, name) for name, preset in PRESETS.items()},
}
LANGUAGE = [name for name, known in KNOWN.items() if not getattr(known.shape, "has_source", True)]


def drawn(known):
    return diagram(
        known.model, known.shape, LOOK, src_len=known.src_len, tgt_len=known.tgt_len
    )  # fmt: skip


def label(graph, node):
    """What stands in a box of the diagram."""
    return re.search(rf'"{re.escape(node)}" \[label="([^"]*)"', graph.dot)[1]


def said(known):
    """Every text of the diagram, its blocks, the generated file and the walk."""
    graph = drawn(known)
    for name, node in graph.nodes.items():
        yield from (label(graph, name), node.title)
    yield from (one.title for one in equations(known.model, known.shape).values())
    yield source_code(known.model, known.shape)
    looked = by_shape(known.model, known.shape, batch=1, src_len=7, tgt_len=11)
    axes = axis_words(looked.reader)
    for step in walk(looked):
        yield from (step.title, step.question.text, step.question.because)
        yield from (topic_text(topic) for topic in step.topics)
        for one in (*step.before, *step.after, *step.extra):
            yield one.label
            yield from (axes[axis] for axis in one.axes)


def test_the_diagram_says_what_a_model_reads():
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
        graph = drawn(KNOWN[name])
        assert [label(graph, node) for node in graph.nodes if node.endswith(" ids")] == reads


def test_a_cls_token_of_a_text_stands_in_the_diagram():
    config = MODEL_CONFIGS["encoder-only"].parse({**SMALL, "pooling": "cls"})
    graph = diagram(config, TextShape(17, 7, head="cls", n_labels=3), LOOK, src_len=5)
    assert label(graph, "src ids") == "Token ids, CLS in front"
    assert label(graph, "pool") == "Take the CLS token"


def test_there_are_language_models_to_look_at():
    assert {"gpt2-small", "gpt2-xl", "gpt-grammar", "gpt-text"} <= set(LANGUAGE)


def test_nothing_that_is_said_of_a_language_model_speaks_of_a_source_or_target():
    for name in LANGUAGE:
        for text in said(KNOWN[name]):
            words = text.replace("There is no source", "")
            assert not re.search(r"\b(source|target)\b", words, re.IGNORECASE), text


@pytest.mark.parametrize("name", ["bert-base", "sentiment", "masked-words"])
def test_a_model_that_reads_one_text_has_no_slots_to_answer_in(name):
    for text in said(KNOWN[name]):
        assert not re.search(r"\bslots?\b", text), text


def test_what_answers_in_one_pass_is_not_said_to_write_token_by_token():
    for name in ["sentiment", "masked-words", "sort-at-once", "bert-base"]:
        text = " ".join(said(KNOWN[name]))
        assert "appends it and runs again" not in text


def test_the_last_arrow_carries_the_shape_of_what_the_model_answers():
    for name in KNOWN:
        known = KNOWN[name]
        shape, batch = known.shape, 2
        with torch.device("meta"):
            model = build_model(known.model, shape)
            if isinstance(shape, ImageShape | CaptionShape):
                inputs = [torch.empty(batch, shape.channels, shape.image_size, shape.image_size)]
            else:
                n_src = known.src_len if shape.has_source else 0
                inputs = [torch.ones(batch, n_src, dtype=torch.long)]
            if not isinstance(shape, ImageShape):
                inputs.append(torch.ones(batch, known.tgt_len, dtype=torch.long))
            answer = model(*inputs)
        (label,) = re.findall(r'-> "logits" \[label=" \(B, (.*)\)"', drawn(known).dot)
        sizes = [int(size.replace(",", "")) for size in label.split(", ")]
        if getattr(
            shape, "is_label", False
        ):  # the engine scores every word, and only labels can be said
            answer = answer[:, 0, -shape.n_labels :]
        assert sizes == list(answer.shape[1:])


def test_a_tied_output_is_said_where_the_model_ties_it():
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
                graph = diagram(config, shape, LOOK, src_len=7, tgt_len=5)
                assert ("the embedding’s matrix: tied" in label(graph, "output")) == truth


@pytest.mark.parametrize(
    ("eps", "latex", "code"),
    [
        (1e-5, "10^{-5}", "nn.LayerNorm(D_MODEL)"),
        (1e-12, "10^{-12}", "nn.LayerNorm(D_MODEL, eps=1e-12)"),
        (2.5e-6, r"2.5 \cdot 10^{-6}", "nn.LayerNorm(D_MODEL, eps=2.5e-06)"),
    ],
)
def test_equations_and_code_hold_the_epsilon_of_the_norms(eps, latex, code):
    config, shape = text_config("encoder-decoder", norm_eps=eps), TextShape(17, 19)
    assert rf"\sigma^2 + {latex}}}" in equations(config, shape)["norm"].latex
    assert code in source_code(config, shape)
    config = config.replace(norm="rmsnorm")
    assert latex in equations(config, shape)["norm"].latex
    assert f"nn.RMSNorm(D_MODEL, eps={eps})" in source_code(config, shape)


def test_both_forms_of_gelu_are_told_apart():
    shape = TextShape(17, 19)
    forms = {
        name: equations(text_config("decoder-only", activation=name), shape)["feed-forward"].latex
        for name in ("gelu", "gelu_tanh")
    }
    assert "erf" in forms["gelu"]
    assert "0.044715" in forms["gelu_tanh"]


def test_the_equation_of_attention_says_which_keys_a_query_may_ask():
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


def test_a_convolution_a_cls_token_and_segments_stand_in_the_embedding():
    vit = MODEL_CONFIGS["vit"].parse({**SMALL, "patch_size": 2, "stem": "conv", "pooling": "cls"})
    latex = equations(vit, ImageShape(6, 3, 5))["embedding"].latex
    assert "K * " in latex
    assert "c + P_0" in latex
    bert = ARCHITECTURES["bert-base"]
    assert (
        r"\mathrm{Norm}(E_{w_t} + P_t + S_1)"
        in equations(bert.model, bert.shape)["embedding"].latex
    )


def test_dropout_is_written_where_it_acts():
    shape = TextShape(17, 19)
    for dropout, count in ((0.0, 0), (0.1, 1)):
        found = equations(text_config("encoder-only", dropout=dropout), shape)
        for name in ("embedding", "attention", "feed-forward"):
            assert found[name].latex.count("Dropout") == count, name


def test_a_published_shape_is_not_changed_by_its_source():
    gpt2 = ARCHITECTURES["gpt2-small"]
    other = dataclasses.replace(gpt2.shape, has_source=True)
    with torch.device("meta"):
        counts = [
            sum(one.numel() for one in build_model(gpt2.model, shape).parameters())
            for shape in (gpt2.shape, other)
        ]
    assert counts[0] == counts[1] == gpt2.n_parameters

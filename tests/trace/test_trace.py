"""The walk: its code gives its tensors, they are the model's, its questions have one answer."""

import ast
import dataclasses
import re
import tomllib

import numpy as np
import pytest
import torch

from tests.anatomy.configurations import samples
from tests.fresh import some, spelled
from tests.models.variants import text_batch
from tests.pairwise import pairwise
from tfm_core.choices.config import MODEL_CONFIGS, TEXT_TASKS, Experiment
from tfm_core.choices.variants.forms import PROJECTIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import ADDED_TO_PATCHES, POSITIONS
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.models.build import build_model
from tfm_core.probe.capture import capture
from tfm_core.probe.labels import modules_by_kind
from tfm_core.sentences import CONTENT_DIR
from tfm_core.trace.functions import FUNCTIONS, session, used
from tfm_core.trace.shown import AXES, entropy, first_numbers, scales, step_of_map, topic_text
from tfm_core.trace.steps import shape_text
from tfm_core.trace.subject import (
    BOOK_SRC,
    Subject,
    book_example,
    by_shape,
    of_architecture,
    subject,
)
from tfm_core.trace.trace import index, trace

SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 11}
READERS = [
    ("sentiment", {"pooling": "mean"}),
    ("sentiment", {"pooling": "cls", "window": 2}),
    ("masked-words", {}),
]
FAMILIES = list(MODEL_CONFIGS)


def sampled(seed):
    return [(family, one) for family in FAMILIES for one in samples(family, seed=seed)]


VARIANTS = [
    *some(sampled(0), sampled),
    *(("encoder-only", {"task": task, **settings}) for task, settings in READERS),
]
PAIRS = {"encoder-decoder", "captioner"}


def experiment(family, **settings):
    layers = {"n_encoder_layers": 2, "n_decoder_layers": 3} if family in PAIRS else {"n_layers": 2}
    if family == "vit":
        layers["patch_size"] = 7
    name = settings.pop("task", "numbers")
    task = {
        "vit": {"kind": "image", "name": "mnist-5000"},
        "captioner": {"kind": "caption", "name": "captions", "n_train": 40, "n_validation": 20},
    }.get(family, {"kind": "text", "name": name, "size": TEXT_TASKS[name].default_size})
    sizes = {"d_model": 12} if family == "recurrent" else SMALL
    model = {"family": family, **sizes, **layers, **settings}
    return Experiment.parse({"model": model, "task": task})


def name_of(variant):
    return f"{variant[0]} {spelled(variant[1])}"


PUBLISHED = ["bert-base", "gpt2-small"]


def published(name):
    """Return a published model, made small, with values, on two texts."""
    known = ARCHITECTURES[name]
    config = known.model.replace(**SMALL, n_layers=2, dropout=0.0)
    shape = dataclasses.replace(known.shape, src_vocabulary=19, tgt_vocabulary=19)
    torch.manual_seed(0)
    model, inputs = build_model(config, shape).eval(), text_batch()
    if not shape.has_source:
        inputs = (inputs[0][:, :0], inputs[1])
    with capture(model) as cache:
        model(*inputs)
    words = {"vocabulary": [[str(i) for i in range(19)]]}
    return Subject(config, model, shape, inputs, cache, words, truth=[["?"], ["?"], ["?"]])


@pytest.fixture(
    scope="module",
    params=[*VARIANTS, *PUBLISHED],
    ids=lambda v: v if isinstance(v, str) else name_of(v),
)
def looked_at(request):
    if isinstance(request.param, str):
        return published(request.param)
    family, settings = request.param
    return subject(experiment(family, **settings))


def test_the_code_of_every_step_gives_what_the_forward_pass_made(looked_at):
    # the third: the last of a stack that has fewer
    for step in (*trace(looked_at, example=1), *trace(looked_at, layer=2, example=1)):
        names = {**step.names, **{one.name: one.value for one in step.inputs}}
        with torch.no_grad():
            exec(step.code, names)  # the steps' own code
        for one in step.outputs:
            torch.testing.assert_close(
                names[one.name], one.value, rtol=1e-4, atol=1e-5, msg=lambda m, s=step: s.name + m
            )
    with capture(looked_at.model) as cache:
        logits = looked_at.model(*looked_at.inputs)
    recorded = {key: cache[key] for key in looked_at.cache}
    for key, value in recorded.items():
        assert torch.equal(value, looked_at.cache[key]), key
    last = next(one for one in trace(looked_at)[-1].outputs if one.name in {"logits", "pooled"})
    assert torch.equal(last.value, logits)
    with torch.no_grad():
        fast = looked_at.model(*looked_at.inputs)  # no capture: the fused kernel
    torch.testing.assert_close(last.value, fast, rtol=1e-4, atol=1e-5)
    kept = [*looked_at.cache.values(), *looked_at.inputs]
    starts = {tensor.data_ptr() for tensor in kept}
    made = {
        "segment",
        "keep",
        "weight",
        "per_head",
        "pixels",
        "cls",
        "probabilities",
        "predicted",
        "written",
        "table",
        "rows",
    }
    for step in trace(looked_at):
        for one in (*step.inputs, *step.outputs, *step.extra):
            assert one.name in made or one.value.data_ptr() in starts, (step.name, one.name)
            for axis, words, size in zip(one.axes, one.words, one.shape, strict=True):
                assert axis in AXES
                assert axis != "1" or size == 1
                tokens = looked_at.tokens(words, 1) if words else None
                assert tokens is None or len(tokens) == size, (step.name, one.name, words)


def test_every_step_has_a_name_its_functions_and_one_right_answer(looked_at):
    for step in trace(looked_at, example=1):
        question = step.question
        if question.options:
            assert len(question.options) >= 2
            assert len(set(question.options)) == len(question.options)
            assert [question.is_right(option) for option in question.options].count(True) == 1
        else:
            assert question.is_right(int(question.answer))
            assert not question.is_right(int(question.answer) + 1)
            assert question.hint
        assert question.because
        for option in question.options:
            if option != question.answer:
                assert question.why_not(option), (step.name, option)
        if not question.options:
            assert question.why_not(int(question.answer) + 1)
        assert question.answer not in question.wrong
        assert set(question.wrong) <= set(question.options) or not question.options
    _nothing_is_given_away(looked_at)
    steps = trace(looked_at)
    names = [step.name for step in steps]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", name) for name in names)
    assert set(names) == {name for part in looked_at.anatomy.all for name in part.steps}
    for step in steps:
        # these call nothing: no positions are added, or nothing to what an attention found
        is_still = step.code.startswith(("placed = embedded  #", "joined = output"))
        assert used(step) or is_still, (step.name, step.code)


def _nothing_is_given_away(looked_at):
    for step in trace(looked_at, example=1):
        question, known = step.question, {one.name for one in step.tensors}
        shown = [one for one in step.tensors if one.name not in step.hidden_shapes]
        named = {*question.shapes, *question.values} - {"predicted", "probabilities"}
        assert named <= known, (step.name, named - known)
        assert set(question.topics) <= set(step.topics)
        if question.options and question.shapes:
            assert question.answer not in {shape_text(one.shape) for one in shown}, step.name
        said = [topic_text(t) for t in step.topics if t not in question.topics]
        said += [part for one, session in used(step) for part in (one.says, session)]
        said += [one.label for one in step.tensors]
        if question.options and not question.values:  # else it is a word of the vocabulary
            assert not any(question.answer in text for text in said), step.name
            assert question.answer not in question.text, step.name


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
def test_the_textbook_example_gives_nothing_away(position):
    _nothing_is_given_away(book_example(position))


def sections(room):
    text = (CONTENT_DIR / "en" / f"{room}.md").read_text(encoding="utf-8")
    return set(re.findall("^## (.+)$", text, re.MULTILINE))


def test_every_question_and_function_of_the_content_files_is_used():
    folder = CONTENT_DIR.parent / "trace"
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = [one for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
    asked = {one.args[0].value for one in calls if re.fullmatch("ask_[a-z]+", one.func.id)}
    assert asked | {"shared"} == sections("walk_questions")
    named = tomllib.loads((folder / "functions.toml").read_text(encoding="utf-8"))
    assert set(named) == sections("walk_functions")


def test_positions_are_counted_from_0_and_batches_are_no_picture():
    looked = subject(experiment("encoder-decoder"))
    found = {step.name: step for step in trace(looked, example=1)}["masks"]
    token = looked.tokens("tgt", 1)[2]
    assert f"query 2, “{token}”," in found.question.text
    mask = looked.cache["decoder.layers.0.self_attention.mask"]
    assert int(found.question.answer) == int(mask[1, 0, 2].sum()) == 3
    assert "from 0" in found.question.why_not(2)
    looked_at = subject(experiment("vit"))
    (step,) = (one for one in trace(looked_at) if one.name == "picture")
    images = looked_at.inputs[0]
    assert len(images) > 1
    assert int(step.question.answer) == images[0].numel() == 28 * 28
    assert "whole batch" in step.question.why_not(images.numel())
    assert "whole batch" not in step.question.why_not(images.numel() + 1)


TEXTBOOK = {  # step -> functions of the texts
    "heads": {"view"},
    "masks": {"tril", "[:, None]"},
    "embedding": {"nn.Embedding"},
    "positions": {"torch.arange", "F.embedding", "nn.Dropout"},
    "queries-keys-values": {"nn.Linear"},
    "split": {"view", "transpose"},
    "scores": {"torch.einsum"},
    "masking": {"masked_fill"},
    "softmax": {"softmax"},
    "weighted-sum": {"torch.einsum"},
    "merge": {"reshape", "nn.Linear"},
    "add-norm": {"nn.LayerNorm", "nn.Dropout"},
    "feed-forward": {"F.relu", "nn.Dropout", "nn.Linear"},
}


def test_functions_of_the_texts_stand_beside_their_steps_and_run():
    shown = {step.name: used(step) for step in trace(book_example("learned"))}
    for name, functions in TEXTBOOK.items():
        assert functions <= {one.name for one, _session in shown[name]}, name
    before = torch.get_rng_state()
    for function in FUNCTIONS:
        shown = session(function.lines)
        assert any(not line.startswith((">>>", "...")) for line in shown.splitlines())
        assert session.__wrapped__(function.lines) == shown  # the same every time
    assert torch.equal(torch.get_rng_state(), before)
    shapes = shapes_of_the_book()
    expected = {
        (1, "src"): (128, 28),
        (1, "tgt"): (128, 29),
        (2, "per_head"): (8, 64, 512),
        (3, "mask"): (128, 1, 1, 28),
        (3, "tgt_mask"): (128, 1, 29, 29),
        (4, "embedded"): (128, 28, 512),
        (4, "tgt_embedded"): (128, 29, 512),
        (5, "placed"): (128, 28, 512),
        (6, "q"): (128, 28, 512),
        (6, "k"): (128, 28, 512),
        (6, "v"): (128, 28, 512),
        (7, "split"): (128, 28, 8, 64),
        (7, "queries"): (128, 8, 28, 64),
        (8, "scores"): (128, 8, 28, 28),
        (9, "masked"): (128, 8, 28, 28),
        (10, "weights"): (128, 8, 28, 28),
        (11, "heads"): (128, 8, 28, 64),
        (12, "merged"): (128, 28, 512),
        (12, "output"): (128, 28, 512),
        (13, "joined"): (128, 28, 512),
        (14, "hidden"): (128, 28, 2048),
        (14, "output"): (128, 28, 512),
        (15, "memory"): (128, 28, 512),
        (16, "weights"): (128, 8, 29, 29),
        (16, "output"): (128, 29, 512),
        (17, "weights"): (128, 8, 29, 28),
        (17, "output"): (128, 29, 512),
        (18, "logits"): (128, 29, 10_000),
        (19, "logits"): (128, 29, 10_000),
    }
    assert {key: shapes[key] for key in expected} == expected


@pytest.mark.parametrize("family", sorted(PAIRS))
def test_each_stack_opens_the_block_that_is_chosen_or_its_last(family):
    opened = {step.block for step in trace(subject(experiment(family)), layer=2)}
    assert opened == {"", "encoder.layers.1", "decoder.layers.2"}


MADE_BY = {
    ("recurrent", "cross"): "scores",
    ("encoder-decoder", "encoder"): "scores",
    ("encoder-only", "slots"): "scores",
    ("decoder-only", "sequence"): "scores",
    ("vit", "patches"): "scores",
    ("encoder-decoder", "decoder"): "decoder-attention",
    ("encoder-decoder", "cross"): "cross-attention",
    ("captioner", "patches"): "scores",
    ("captioner", "decoder"): "decoder-attention",
    ("captioner", "picture"): "cross-attention",
}


@pytest.mark.parametrize("kind", MADE_BY, ids=" ".join)
def test_a_map_of_the_attention_page_leads_to_the_step_that_makes_it(kind):
    family, attention = kind
    chosen = experiment(family)
    assert attention in modules_by_kind(chosen)
    assert step_of_map(family, attention) == MADE_BY[kind]
    assert MADE_BY[kind] in {step.name for step in trace(subject(chosen))}


def shapes_of_the_book():
    found = {}
    for number, step in enumerate(trace(book_example()), 1):
        for one in (*step.outputs, *step.extra):
            found[number, one.name] = one.shape
    return found


@pytest.fixture(scope="module", params=["learned", "sinusoidal"])
def book(request):
    return book_example(request.param, with_numbers=True)


def test_every_tensor_of_the_textbook_example_follows_from_its_steps(book):
    assert not book.is_real
    for step in trace(book, layer=5):
        assert step.question.is_right(step.question.answer)
        for one in step.tensors:
            assert one.has_values, (step.name, one.name)
            batch = [size for size, axis in zip(one.shape, one.axes, strict=True) if axis != "B"]
            kept = list(one.looked_at.shape)
            assert kept[len(kept) - len(batch) :] == batch
            assert kept[0] == 1 or one.axes[0] != "B"
            assert first_numbers(one, 0)
    steps = {step.name: step for step in trace(book)}
    for name in ("split", "scores", "masking", "softmax", "positions"):
        step = steps[name]
        made = {**step.names, **{one.name: one.looked_at for one in step.inputs}, "B": 1}
        made["dropout"] = torch.nn.Identity()
        exec(step.code, made)
        for one in step.outputs:
            torch.testing.assert_close(made[one.name], one.looked_at, msg=f"{name} {one.name}")
    weights = next(one for one in steps["softmax"].outputs if one.name == "weights").looked_at
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 8, BOOK_SRC))
    assert (weights[..., -6:] == 0).all()  # the padding at the end of the source


def test_dropout_is_said_and_the_notebooks_vit_has_its_shapes():
    acts = {"positions", "weighted-sum", "add-norm", "feed-forward"}
    for dropout, expected in ((0.1, acts), (0.0, set())):
        steps = trace(subject(experiment("encoder-decoder", dropout=dropout)))
        assert {step.name for step in steps if "dropout" in step.code} == expected
        assert {step.name for step in steps if "dropout" in step.topics} == expected
    assert "text-vit" in SMALL_KNOWN
    steps = {step.name: step for step in trace(of_architecture(ARCHITECTURES["text-vit"]))}
    found = {name: steps[name].outputs[0].shape for name in ("patches", "patch-projection", "cls")}
    assert found == {
        "patches": (128, 49, 16),
        "patch-projection": (128, 49, 8),
        "cls": (128, 50, 8),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_too_large_is_walked_through_by_its_shapes(family, monkeypatch):
    monkeypatch.setattr("tfm_core.trace.subject.MAX_REAL", 10)
    large = subject(experiment(family))
    assert not large.is_real
    assert trace(large)[-1].outputs[0].shape[0] == large.n_examples


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "recurrent"])
def test_the_wrong_scale_is_flatter(family):
    looked = subject(experiment(family))
    stack = "decoder" if family == "decoder-only" else "encoder"
    module = f"{stack}.layers.0.self_attention"
    _mistake, is_own, found = scales(looked, module, 1, 2)
    assert not is_own
    bits = entropy(looked.cache[f"{module}.weights"][1, 2])
    np.testing.assert_allclose(found["right"], bits, atol=1e-5)
    assert (found["wrong"] >= found["right"] - 1e-5).all()
    assert (found["wrong"] <= found["most"] + 1e-5).all()


@pytest.mark.core(5)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_published_model_is_walked_through_by_its_shapes(name):
    known = ARCHITECTURES[name]
    looked = by_shape(
        known.model, known.shape, batch=1, src_len=known.src_len, tgt_len=known.tgt_len
    )
    steps = trace(looked)
    assert {s.name: (n, s.title) for n, s in enumerate(steps, 1)} == index(known.model, known.shape)
    assert steps[-1].outputs[0].shape[0] == 1
    _nothing_is_given_away(looked)


SMALL_KNOWN = [
    name
    for name, known in ARCHITECTURES.items()
    if parameter_table(known.model, known.shape).total < 1_000_000
]


@pytest.mark.parametrize("name", SMALL_KNOWN)
def test_a_model_below_a_million_parameters_has_numbers_in_the_batch_of_its_text(name):
    known = ARCHITECTURES[name]
    looked = of_architecture(known)
    assert looked.is_real
    assert looked.n_examples == known.batch
    for step in trace(looked):
        assert all(one.has_values for one in step.tensors)
    runs(looked)


MATRICES = {
    "full": "",
    "unbiased": "",
    "no-output": "no-output-projection",
    "sliced": "sliced-heads",
}
RESIDUALS = ("", "no-residuals", "residual-from-normed", "feed-forward-residual-from-normed")


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "recurrent"])
def test_every_printed_line_uses_parts_that_the_model_has(family):
    """Every two of projections, norm, residual and kind of position that the family takes."""
    places = ADDED_TO_PATCHES if family == "captioner" else POSITIONS
    if family not in ("vit", "captioner"):
        places = [name for name in places if name != "sinusoidal-2d"]
    for settings in pairwise(
        lambda one: one["norm"] != "none" or "from-normed" not in one["residual"],
        projections=MATRICES,
        norm=NORMS,
        position=places,
        residual=RESIDUALS,
    ):
        projections = settings["projections"]
        runs(
            subject(
                experiment(
                    family,
                    projection_bias=projections != "unbiased",
                    norm=settings["norm"],
                    position=settings["position"],
                    mistakes=f"{settings['residual']},{MATRICES[projections]}",
                )
            )
        )


def runs(looked):
    """Run the code of every step; it gives the step's tensors and calls no part that is absent."""
    called = []
    absent = [module for module in looked.model.modules() if isinstance(module, torch.nn.Identity)]
    for module in absent:
        module.register_forward_hook(lambda module, *_: called.append(module))
    for step in trace(looked, layer=1):
        names = {**step.names, **{one.name: one.value for one in step.inputs}}
        called.clear()
        with torch.no_grad():
            exec(step.code, names)
        is_whole_part = step.name in WHOLE_PARTS
        assert is_whole_part or not called, (step.name, step.code)
        assert ("out_projection" in step.code) <= (looked.config.projections in MIXED), step.code
        for one in step.outputs:
            torch.testing.assert_close(
                names[one.name], one.value, rtol=1e-4, atol=1e-5, msg=lambda m, s=step: s.name + m
            )


WHOLE_PARTS = {"encoder-stack", "decoder-attention", "cross-attention", "logits", "whole"}
"""Steps whose code calls a whole attention, a stack or the model."""
MIXED = {name for name, one in PROJECTIONS.items() if one.has_output}


@pytest.mark.parametrize(
    ("score", "order"), [("additive", "additive"), ("dot", "luong"), ("general", "luong")]
)
def test_the_order_that_a_score_follows_is_told(score: str, order: str) -> None:
    """Bahdanau et al. 2015 attend before the step of the decoder, Luong et al. 2015 after it."""
    chosen = subject(experiment("recurrent", attention=score))
    topics = {topic for step in trace(chosen) for topic in step.topics}
    assert {f"asking-{order}", f"writing-{order}"} <= topics

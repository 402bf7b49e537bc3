"""The arithmetic that is shown for a cell is the arithmetic that the model did."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tests.inspect.constructed import small, text_experiment, vit_experiment  # noqa: E402
from tests.probe.expected_masks import expected_mask  # noqa: E402
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES  # noqa: E402
from tfm_core.inspect.attention.example import look_at_text  # noqa: E402
from tfm_core.inspect.attention.maps import attention_cell, trace_attention  # noqa: E402
from tfm_core.probe.labels import axes, modules_by_kind  # noqa: E402

EXPERIMENTS = {
    "rotary": text_experiment("decoder-only", position="rotary"),
    "alibi": text_experiment(position="alibi"),
    "t5-bias": text_experiment("encoder-only", position="t5-bias"),
    "vit": vit_experiment("cls"),
    "sink": text_experiment("encoder-only", sink="learned"),
    "zero-sink": text_experiment("decoder-only", sink="zero"),
    **{name: text_experiment("recurrent", attention=name) for name in ALIGNMENT_SCORES},
}
TANH = {"additive", "concat"}
ITEM = {"src": ["forty", "two"], "tgt": ["4", "2"]}
PICTURE = np.random.default_rng(5).integers(0, 256, (1, 28, 28), dtype=np.uint8)


@pytest.fixture(scope="module", params=EXPERIMENTS)
def run(request, tmp_path_factory):
    experiment = small(EXPERIMENTS[request.param])
    return trained(tmp_path_factory.mktemp("runs"), experiment, steps=2)[0]


def trace_of(run, module=None):
    module = module or next(iter(modules_by_kind(run.experiment).values()))[0]
    is_image = run.experiment.task.kind == "image"
    return trace_attention(run, {} if is_image else ITEM, module, PICTURE if is_image else None)


def every_cell(run):
    rng, heads = np.random.default_rng(2), run.experiment.model.n_heads
    for modules in modules_by_kind(run.experiment).values():
        for module in modules:
            trace = trace_of(run, module)
            shape = axes(run.experiment, trace.item, module).shape
            for _ in range(5):
                head, query, key = (int(rng.integers(n)) for n in (heads, *shape))
                yield trace, head, query, key


def test_every_step_gives_its_tensor_and_rows_add_up(run):
    for trace, head, query, key in every_cell(run):
        found = attention_cell(run.experiment, trace, head, query, key)
        tensors = trace.tensors
        assert found.dimensions["product"].sum() == pytest.approx(found.dot, abs=1e-5)
        is_recurrent = run.experiment.model.family == "recurrent"
        assert found.scale == (1 if is_recurrent else math.sqrt(4))
        assert found.is_tanh == (getattr(run.experiment.model, "attention", "") in TANH)
        score = tensors["scores"][head, query, key]
        assert found.dot / found.scale + found.bias == pytest.approx(score, abs=1e-4)
        allowed = expected_mask(run.experiment, trace.item, trace.module)
        assert np.array_equal(found.row["may_attend"], allowed[query])
        weights = found.row["exponential"] / found.total
        np.testing.assert_allclose(weights, tensors["weights"][head, query], atol=1e-6)
        assert found.weight == pytest.approx(weights[key], abs=1e-6)
        dims = found.dimensions
        np.testing.assert_allclose(dims["contribution"], found.weight * dims["value"], atol=1e-6)
        np.testing.assert_allclose(dims["output"], tensors["heads"][head, query], atol=1e-6)
    trace = trace_of(run)
    n_keys = axes(run.experiment, trace.item, trace.module).shape[1]
    row = [
        attention_cell(run.experiment, trace, run.experiment.model.n_heads - 1, 1, key)
        for key in range(n_keys)
    ]
    assert sum(found.share for found in row) == pytest.approx(1, abs=1e-4)
    assert sum(found.norm_share for found in row) == pytest.approx(1, abs=1e-5)
    total = np.sum([found.dimensions["contribution"] for found in row], axis=0)
    np.testing.assert_allclose(total, row[0].dimensions["output"], atol=1e-5)
    found = attention_cell(run.experiment, trace, 0, 1, 0)
    position = run.experiment.model.position
    assert (found.bias != 0) == (position in {"alibi", "t5-bias"})
    assert position != "alibi" or found.bias < 0
    has_sink = getattr(run.experiment.model, "sink", "none") != "none"
    assert (found.sink > 0) == has_sink
    of_sink = found.sink / found.total
    assert found.row["weight"].sum() + of_sink == pytest.approx(1, abs=1e-5)
    assert len(found.row) == n_keys


def test_a_forbidden_cell_gets_nothing_and_ones_own_sentence_can_be_traced(tmp_path):
    run = trained(tmp_path, small(text_experiment()), steps=1)[0]
    trace = trace_of(run, "decoder.layers.0.self_attention")
    found = attention_cell(run.experiment, trace, 0, 0, 2)
    assert found.key_token == "2"
    assert not found.may_attend
    assert found.weight == found.share == found.norm_share == 0
    assert np.isfinite(found.score)
    example = look_at_text(run, "forty two")
    for module, weights in example.attention.items():
        trace = trace_attention(run, example.item, module)
        np.testing.assert_allclose(trace.tensors["weights"], weights, atol=1e-6)

    trace = trace_of(run, "decoder.layers.0.cross_attention")
    for at, sentence in (
        ((9, 0, 0), "There is no head 10: this map has 3"),
        ((0, 3, 0), "There is no query 4: this map has 3"),
        ((0, 0, -1), "There is no key 0: this map has 2"),
    ):
        with pytest.raises(ValueError, match=sentence):
            attention_cell(run.experiment, trace, *at)

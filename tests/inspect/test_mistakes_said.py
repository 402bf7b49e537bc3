"""What is said of a run follows the mistakes that its model makes, and is true of its numbers."""

import math

import numpy as np
import pytest

from tests.training.test_loop import experiment
from tfm_core.choices.mistakes import made_in
from tfm_core.choices.variants.forms import CAUSALITIES, SCALES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.inspect.attention.maps import AttentionTrace, attention_cell
from tfm_core.inspect.differences import differences, run_names
from tfm_core.probe.labels import kind_of
from tfm_core.trace.learning import answers, batch, one_answer, start
from tfm_core.trace.mistakes import residual_from_norm, shared_norm

DECODER = "decoder.layers.0.self_attention"
FIELDS = {
    "model__norm": NORMS,
    "model__mistakes": ["", *made_in("block", "decoder")],
    "training__mistakes": ["", *made_in("training")],
}
OF_SCALE = {"sqrt-d-head": "", "none": "no-scale", "sqrt-d-model": "scaled-by-d-model"}
OF_MASK = {"causal": "", "none": "no-causal-mask", "transposed": "mask-transposed"}


def changed(path, name):
    section, _, field = path.partition("__")
    return experiment(**{section: {field: name}})


@pytest.mark.parametrize(("path", "registry"), FIELDS.items(), ids=FIELDS)
def test_runs_are_named_by_the_mistake_that_they_differ_in(path, registry):
    made = [changed(path, name) for name in registry]
    (row,) = differences(made)
    assert row.field == path.replace("__", ".")
    assert len({str(name) for name in run_names(made)}) == len(registry)


def test_runs_and_their_losses_are_called_what_they_are():
    made = [changed("model__mistakes", name) for name in ("", "no-residuals")]
    assert [str(name) for name in run_names(made)] == ["no mistakes", "no residuals"]
    assert set(OF_MASK) == set(CAUSALITIES)
    said = {name: kind_of(changed("model__mistakes", OF_MASK[name]), DECODER) for name in OF_MASK}
    assert len({kind.label for kind in said.values()}) == len(CAUSALITIES)
    assert "the causal mask hides the future" in said["causal"].look_for
    for name in ("none", "transposed"):
        assert "hides the future" not in said[name].look_for
        assert "Mistake" in said[name].help
    right, wrong = (
        start(changed("training__mistakes", name)) for name in ("", "softmax-before-loss")
    )
    for trainer, is_softmaxed in ((right, False), (wrong, True)):
        examples, loss = batch(trainer)
        there = next(numbers for numbers in examples["answers"] if numbers)
        table, right_one = one_answer(trainer, there[0])
        assert right_one["is_changed"] is is_softmaxed
        n_answers = examples["answers"].map(len)
        counted = (examples["loss"] * n_answers).sum() / n_answers.sum()
        assert float(counted) == pytest.approx(loss, abs=1e-5)
        assert bool((abs(table["logit"] - 0.5) <= 0.5).all()) is is_softmaxed
    owners = [answers(trainer)[1].tolist() for trainer in (right, wrong)]
    assert sorted(owners[0]) == sorted(owners[1])


@pytest.mark.parametrize("name", SCALES)
def test_the_arithmetic_of_a_cell_divides_as_the_model_does(name):
    chosen = changed("model__mistakes", OF_SCALE[name])
    d_head, d_model = chosen.model.d_head, chosen.model.d_model
    divisor = {"sqrt-d-head": math.sqrt(d_head), "none": 1.0, "sqrt-d-model": math.sqrt(d_model)}
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(2, 2, d_head)).astype(np.float32) for _ in range(3))
    scores = q @ k.swapaxes(-1, -2) / divisor[name]
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    item = {"src": ["a", "b"], "tgt": ["a", "b"], "kind": "text"}
    tensors = {
        "query": q,
        "key": k,
        "value": v,
        "scores": scores,
        "masked_scores": scores,
        "weights": weights,
        "heads": weights @ v,
    }
    found = attention_cell(
        chosen, AttentionTrace(7, item, "encoder.layers.0.self_attention", tensors), 1, 1, 0
    )
    assert found.scale == pytest.approx(divisor[name])
    assert found.scaled == pytest.approx(float(scores[1, 1, 0]), rel=1e-4)
    assert found.bias == 0


@pytest.mark.parametrize(
    ("settings", "make", "sentence"),
    [
        ({"norm": "none"}, shared_norm, "This model has no norms"),
        ({"mistakes": "shared-norm"}, shared_norm, "already shares one norm"),
        ({"norm": "none"}, residual_from_norm, "This model has no norms"),
        ({"mistakes": "no-residuals"}, residual_from_norm, "residuals already have a mistake"),
    ],
)
def test_a_mistake_that_a_model_makes_already_is_not_shown_again(settings, make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(start(experiment(model=settings)))

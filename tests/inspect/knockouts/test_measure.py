"""What switching parts off costs, and what it changes in one example."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from tests.inspect.attention.test_own_example import trained
from tests.inspect.constructed import small, text_experiment
from tests.inspect.knockouts.test_engine import (
    EXPERIMENTS,
    answers,
    batch_of,
    built_model,
    condition,
)
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.engine import (
    fixed_pattern,
    knocked_out,
    reweigh_heads,
    scaled_heads,
)
from tfm_core.inspect.knockouts.measure import (
    PATTERNS,
    answers_with_pattern,
    cells_of,
    edited_pattern,
    example_without,
    pattern_of,
    score_without,
)
from tfm_core.inspect.knockouts.parts import (
    Part,
    first_to_go,
    heads_of,
    is_attention,
    name_of,
    parts_of,
)
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.probe.capture import capture, intervene
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED
from tfm_core.training.trainer import objective_of

ONE_HEAD = Part("head", "decoder", 0, "cross", 0)


def recorded(name: str) -> Run:
    return Run(RECORDED / f"recorded-{name}")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run, _trainer = trained(tmp_path_factory.mktemp("runs"), small(text_experiment()), steps=2)
    return run


def test_with_everything_on_it_is_the_training_and_losses_add_up() -> None:
    run = recorded("one-head")
    task = run.experiment.task
    objective = objective_of(task)(data_of(run.experiment), task)
    loss, accuracy, exact = objective.measure(model_of(run)[0], "validation")
    found = score_without(run, (), "zero", 10**9)
    assert found.n == measure.n_validation(run)
    assert (found.loss, found.accuracy, found.exact) == pytest.approx((loss, accuracy, exact))
    accuracies = ((0.9, 0.895, 0.88, 0.9), (0.9, 0.88, 0.88, 0.88))
    curves = pd.DataFrame(
        {"order": order, "removed": removed, "accuracy": accuracy}
        for order, row in enumerate(accuracies)
        for removed, accuracy in zip((0, 2, 3, 5), row, strict=True)
    )
    assert measure.heads_to_spare(curves) == [2, 0]
    run = recorded("korean")
    heads = tuple(Part("head", "decoder", 2, "cross", head) for head in range(4))
    found = measure.joint_effect(run, heads, "zero", 50)
    assert found is not None
    alone, joint = found
    whole = score_without(run, (), "zero", 50).loss
    assert joint == score_without(run, heads, "zero", 50).loss - whole
    assert joint > 5 * alone  # they stand in for each other
    assert "stood in for the other" in measure.joint_effect_text(alone, joint)
    assert "serve the same purpose" in measure.joint_effect_text(0.4, 0.2)
    assert "its own work" in measure.joint_effect_text(0.2, 0.21)
    assert "need none of them" in measure.joint_effect_text(0.0001, 0.0009)
    assert measure.joint_effect(run, heads[:1], "zero", 50) is None


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_the_only_head_that_aligns_is_the_whole_task(how: Any) -> None:
    run = recorded("one-head")
    whole, without = (score_without(run, off, how, 200) for off in ((), (ONE_HEAD,)))
    assert whole.accuracy > 0.99
    assert without.accuracy < 0.7
    assert without.exact is not None
    assert without.exact < 0.1
    before, after = (example_without(run, 0, off, how, 200) for off in ((), (ONE_HEAD,)))
    assert before.answer == tuple(before.item["tgt"])
    assert after.answer != before.answer


@pytest.mark.parametrize("name", ["digits", "grammar", "captions", "additive", "masked-words"])
def test_every_family_loses_by_its_first_part_and_answers_without_it(name: str) -> None:
    run = recorded(name)
    off = (first_to_go(run.experiment),)
    for how in ("zero", "mean"):
        assert score_without(run, off, how, 20).loss > score_without(run, (), how, 20).loss
        found = example_without(run, 0, off, how, 20)
        assert found.answer is not None or found.probabilities is not None
        assert found.attention


def test_importance_is_the_rise_of_the_loss_and_pruning_begins_with_the_least(few: Run) -> None:
    *_done, found = measure.importances(few, "zero", 5)
    assert found["part"].tolist() == list(heads_of(few.experiment))
    whole = score_without(few, (), "zero", 5)
    for each in found.itertuples():
        assert each.rise == each.loss - whole.loss
        assert (each.loss, each.accuracy) == score_without(few, (each.part,), "zero", 5)[:2]
    order = found.sort_values("rise", kind="stable")["part"].tolist()
    *counts, curves = measure.prune(few, order, "zero", 5, n_orders=2)
    assert counts == list(range(1, measure.n_measurements(len(order), 2) + 1))
    assert isinstance(curves, pd.DataFrame)
    drawn = [curve.drop(columns=["order", "removed"]) for _order, curve in curves.groupby("order")]
    assert len(drawn) == 1 + 2
    assert tuple(drawn[0].iloc[0]) == whole
    assert tuple(drawn[0].iloc[1]) == score_without(few, order[:1], "zero", 5)
    everything_off = score_without(few, order, "zero", 5)
    assert {tuple(curve.iloc[-1]) for curve in drawn} == {everything_off}
    assert curves["removed"].max() == len(order) == len(heads_of(few.experiment))


def test_by_its_gradient_too_the_head_that_is_read_matters_and_no_other(few: Run) -> None:
    slopes = measure.gradient_importances(recorded("many-heads"), 50)
    assert set(slopes) == set(heads_of(recorded("many-heads").experiment))
    assert all(value > 0 for value in slopes.values())
    *_done, found = measure.importances(recorded("many-heads"), "zero", 50)
    most = found["part"][found["rise"].idxmax()]
    ranks = sorted(slopes, key=lambda part: -slopes[part])
    assert most in ranks[: len(ranks) // 2]
    assert measure.gradient_importances(recorded("additive"), 5) == {}


@pytest.mark.parametrize("name", ["korean", "digits"])
def test_each_example_counts_alike_in_the_gradient_however_long_it_is(name: str) -> None:
    run, n = recorded(name), 7
    model, objective = model_of(run)[0], measure.objective.__wrapped__(run, n)
    heads = heads_of(run.experiment)
    totals = dict.fromkeys(heads, 0.0)
    for example in range(n):
        scales = {head: torch.ones(1, requires_grad=True) for head in heads}
        with torch.inference_mode(False), torch.enable_grad(), scaled_heads(model, scales):
            row = torch.tensor([example])
            loss = objective.loss_and_metrics(model, row, torch.Generator()).loss
            found = torch.autograd.grad(loss, list(scales.values()))
        for head, gradient in zip(heads, found, strict=True):
            totals[head] += float(gradient.abs())
    slopes = measure.gradient_importances(run, n)
    assert slopes == pytest.approx({head: total / n for head, total in totals.items()}, rel=1e-3)


FAMILIES = ("one-head", "korean", "additive", "masked-words", "spans", "grammar", "sentiment")


@pytest.mark.parametrize("name", [*FAMILIES, "captions"])
def test_a_mean_does_not_depend_on_how_examples_are_cut_into_batches(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recorded(name)
    found = []
    for size in (23, 7, 1):
        monkeypatch.setattr(measure, "at_once", lambda _experiment, _wanted, size=size: size)
        found.append(measure.means_over.__wrapped__(run, 23))  # not what is kept
    whole, *others = found
    assert whole
    for other in others:
        assert other.keys() == whole.keys()
        for part, mean in whole.items():
            torch.testing.assert_close(other[part], mean, atol=2e-5, rtol=1e-4)


_WITH_HEADS = [name for name in EXPERIMENTS if name != "recurrent"]


def _captured(model: nn.Module, inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
    with capture(model, only={"weights", "mask"}) as cache:
        model(*inputs)
    return dict(cache)


@pytest.mark.parametrize("name", _WITH_HEADS)
def test_even_attention_is_even_where_permitted_and_own_patterns_change_nothing(name: str) -> None:
    experiment = EXPERIMENTS[name]
    model, inputs = built_model(experiment), batch_of(experiment)
    before, own = condition(model), _captured(model, inputs)
    for part in filter(is_attention, parts_of(experiment)):
        with knocked_out(model, [part], is_even=True):
            seen = _captured(model, inputs)
        assert condition(model) == before
        weights, usual = seen[f"{part.module}.weights"], own[f"{part.module}.weights"]
        mask = own.get(f"{part.module}.mask", torch.ones((), dtype=torch.bool))
        allowed = mask.expand_as(weights).float()
        expected = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
        heads = list(range(weights.size(1))) if part.head is None else [part.head]
        torch.testing.assert_close(weights[:, heads], expected[:, heads])
        others = [head for head in range(weights.size(1)) if head not in heads]
        torch.testing.assert_close(weights[:, others], usual[:, others]), name_of(part)
    model = built_model(experiment)
    inputs = tuple(part[:1] for part in batch_of(experiment))
    whole, own = answers(model, inputs), _captured(model, inputs)
    for path, attention in model.named_modules():
        if isinstance(attention, MultiHeadAttention):
            rows = own[f"{path}.weights"][0, 1]
            with intervene(model, {f"{path}.weights": reweigh_heads(1, fixed_pattern(rows))}):
                torch.testing.assert_close(answers(model, inputs), whole, atol=2e-6, rtol=1e-5)
            other = reweigh_heads(1, fixed_pattern(rows.roll(1, 0) * 0.5))
            with intervene(model, {f"{path}.weights": other}):
                assert not torch.allclose(answers(model, inputs), whole, atol=1e-5)


CAUSAL = np.tril(np.ones((5, 5), np.bool_))
OWN = CAUSAL / CAUSAL.sum(1, keepdims=True)
WORDS = tuple("abcde")


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("allowed", [CAUSAL, np.ones((3, 7), np.bool_), CAUSAL.T], ids=str)
def test_rows_of_every_pattern_sum_to_one_within_the_mask(name: str, allowed: np.ndarray) -> None:
    own = allowed / allowed.sum(1, keepdims=True)
    rows = pattern_of(name, own, allowed)
    np.testing.assert_allclose(rows.sum(1), 1)
    assert not rows[~allowed].any()


def test_patterns_and_edited_rows_keep_all_other_queries() -> None:
    assert pattern_of("previous", OWN, CAUSAL).argmax(1).tolist() == [0, 0, 1, 2, 3]
    assert pattern_of("first", OWN, CAUSAL).argmax(1).tolist() == [0] * 5
    assert (pattern_of("itself", OWN, CAUSAL) == np.eye(5)).all()
    np.testing.assert_array_equal(pattern_of("own", OWN, CAUSAL), OWN)
    weights = torch.rand(2, 1, 5, 7)
    changed = fixed_pattern(torch.eye(3))(weights, None)
    torch.testing.assert_close(changed[:, 0, :3, :3], torch.eye(3).expand(2, 3, 3))
    assert not changed[:, :, :3, 3:].any()
    torch.testing.assert_close(changed[:, :, 3:], weights[:, :, 3:])
    own = OWN + CAUSAL * np.array([0, 1, 0, 1, 0]) * 1e-4
    cells = cells_of(own, CAUSAL)
    assert np.isnan(cells[~CAUSAL]).all()
    np.testing.assert_array_equal(edited_pattern(own, cells, CAUSAL, WORDS, WORDS), own)
    cells[3] = [1, np.nan, 0, 3, np.nan]
    rows = edited_pattern(own, cells, CAUSAL, WORDS, WORDS)
    assert rows[3].tolist() == [0.25, 0, 0, 0.75, 0]
    np.testing.assert_array_equal(np.delete(rows, 3, 0), np.delete(own, 3, 0))


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        ((1, 3), 0.5, "hides “d” from “b”"),
        ((4, 0), -1, "weights of “e” can't be negative"),
        ((0, 0), 0, "weights of “a” can't be negative"),
    ],
)
def test_what_is_no_pattern_gets_a_sentence(at: tuple[int, int], value: float, words: str) -> None:
    cells = cells_of(OWN, CAUSAL)
    cells[at] = value
    with pytest.raises(ValueError, match=words):
        edited_pattern(OWN, cells, CAUSAL, WORDS, WORDS)


@pytest.mark.parametrize(
    "name", ["addition", "korean", "masked-words", "sentiment", "spans", "captions", "digits"]
)
def test_of_a_recorded_model_its_own_pattern_keeps_each_answer_and_another_moves_it(
    name: str,
) -> None:
    from tfm_core.inspect.knockouts.measure import example_without
    from tfm_core.inspect.knockouts.parts import heads_of

    run = Run(RECORDED / f"recorded-{name}")
    head = heads_of(run.experiment)[-1]
    example = example_without(run, 0, (), "zero", 0)
    own, mask = example.attention[head.module][head.head], example.masks[head.module]
    allowed = np.broadcast_to(mask.reshape(mask.shape[-2:]), own.shape)
    same, other = (
        answers_with_pattern(run, 0, head, pattern_of(one, own, allowed))
        for one in ("own", "previous")
    )
    assert (same["before"] == same["after"]).all()
    assert same["moved"].max() < 1e-5 < other["moved"].max() <= 1
    assert (other[["before_share", "after_share"]] <= 1).all(axis=None)

"""Replaced attention weights: even ones, a pattern, and a head's own, which change nothing."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.inspect.knockouts.test_engine import (
    EXPERIMENTS,
    answers,
    condition,
    inputs_of,
    model_of,
)
from tfm_core.inspect.knockouts.engine import fixed_pattern, knocked_out, reweigh_heads
from tfm_core.inspect.knockouts.measure import (
    PATTERNS,
    answers_with_pattern,
    cells_of,
    edited_pattern,
    pattern_of,
)
from tfm_core.inspect.knockouts.parts import is_attention, name_of, parts_of
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.probe.capture import capture, intervene
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

_WITH_HEADS = [name for name in EXPERIMENTS if name != "recurrent"]


def _captured(model: nn.Module, inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
    with capture(model, only={"weights", "mask"}) as cache:
        model(*inputs)
    return dict(cache)


@pytest.mark.parametrize("name", _WITH_HEADS)
def test_even_attention_is_even_where_permitted_and_own_patterns_change_nothing(name: str) -> None:
    experiment = EXPERIMENTS[name]
    model, inputs = model_of(experiment), inputs_of(experiment)
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
    model = model_of(experiment)
    inputs = tuple(part[:1] for part in inputs_of(experiment))
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
        ((0, 0), 0, "“a” needs"),
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

"""What decides in the recorded models: the token that differs, and parts that sum to the answer."""

from __future__ import annotations

import numpy as np
import pytest

from tfm_core.inspect.knockouts.causes import can_change, causes, other_picture, suggested
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

TEXTS = (
    "recorded-addition", "recorded-grammar", "recorded-korean", "recorded-masked-words",
    "recorded-sentiment", "recorded-spans",
)  # fmt: skip
PICTURES = ("recorded-captions", "recorded-digits", "recorded-notebook-vit")


@pytest.mark.parametrize("name", [*TEXTS, *PICTURES])
def test_every_recorded_model_has_another_input_and_answers_it_differently(name: str) -> None:
    run = Run(RECORDED / name)
    other = suggested(run, 0) if name in TEXTS else other_picture(run, 0)
    found = causes(run, 0, other)
    assert found.answers[0] != found.answers[1]
    assert found.patches.clean > 0 > found.patches.corrupted  # each prefers its own answer
    assert found.effects is not None
    for most in (2, 5, 1000):
        parts = found.parts(most)
        assert len(parts) <= most + 1
        assert sum(v for _, v in parts) == pytest.approx(found.effects.total, abs=1e-3)
    for stack, tokens in found.tokens.items():
        values, names = found.stream(stack)
        assert values.shape == (len(names), len(tokens))
    values, names = found.heads()
    assert len(values) == len(names)


def test_what_differs_is_read_from_its_own_token_and_carried_to_the_answer() -> None:
    run = Run(RECORDED / "recorded-addition")
    found = causes(run, 0, "289+104")  # instead of 289+102
    values, _names = found.stream("decoder")
    assert found.tokens["decoder"][6] == "2"
    first = np.zeros(len(found.tokens["decoder"]))
    first[6] = 1.0
    np.testing.assert_allclose(values[0], first, atol=1e-4)
    last = np.zeros(len(first))
    last[-1] = 1.0
    np.testing.assert_allclose(values[-1], last, atol=1e-4)


def test_inputs_that_cannot_be_compared_get_a_sentence() -> None:
    run = Run(RECORDED / "recorded-korean")
    with pytest.raises(ValueError, match="it needs 9"):
        causes(run, 0, "A rabbit")
    with pytest.raises(ValueError, match="alike"):
        causes(run, 0, run.probe().items[0]["src_text"])
    with pytest.raises(ValueError, match="zebra"):
        causes(run, 0, "A zebra bought a big egg and a book.")
    assert not can_change(Run(RECORDED / "recorded-additive"))

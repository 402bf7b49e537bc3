"""What an experiment showed, said of constructed runs, in both directions."""

import dataclasses

import pytest
import torch

from tfm_core.studies import comparing
from tfm_core.studies.comparing import Generated, Result, in_any_order

FAST = ((0, 0.05), (50, 0.5), (100, 0.95), (150, 0.99), (200, 0.995))
SLOW = ((0, 0.05), (50, 0.2), (100, 0.4), (150, 0.6), (200, 0.994))


def result(
    label: str = "usual", sequence_accuracy: float | None = 0.97, **values: object
) -> Result:
    made = Result(
        label, accuracy=0.995, sequence_accuracy=sequence_accuracy, n_unseen=1000, validations=FAST
    )
    return dataclasses.replace(made, **values)


def test_ends_that_differ_enough_are_worse_better_slower_or_faster():
    right, wrong = result(), result("broken", 0.13, accuracy=0.6)
    found = comparing.usual(right, wrong)
    assert found.kind == "worse"
    assert "“broken” gets 13.0% of unseen sequences right, “usual” 97.0%" in found.sentence
    assert "84.0 points less." in found.sentence
    found = comparing.usual(wrong, right)
    assert found.kind == "better"
    assert "84.0 points more." in found.sentence
    found = comparing.usual(result("usual", 0.9144), result("odd", 0.1356))
    assert "13.6%" in found.sentence
    assert "91.4%" in found.sentence
    assert "77.8 points less." in found.sentence  # of what is shown; 77.88 of what was measured
    right, wrong = (result(name, None, accuracy=a) for name, a in (("a", 0.97), ("b", 0.5)))
    found = comparing.usual(right, wrong)
    assert found.kind == "worse"
    assert "“b” gets 50.0% right, “a” 97.0%" in found.sentence
    few = {"n_unseen": 50}
    found = comparing.usual(result(**few), result("broken", 0.93, **few))
    assert found.kind == "same"
    found = comparing.usual(result(sequence_accuracy=1.0), result("broken", 0.995, n_unseen=10**6))
    assert found.kind == "same"
    late = ((0, 0.05), (50, 0.5), (100, 0.8), (150, 0.95), (200, 0.995))
    assert comparing.usual(result(), result("broken", validations=late)).kind == "same"
    found = comparing.usual(result(), result("broken", 0.968, validations=SLOW))
    assert found.kind == "slower"
    assert "at step 200, “usual” at step 100." in found.sentence
    found = comparing.usual(result(validations=SLOW), result("better"))
    assert found.kind == "faster"
    assert "at step 100, “usual” only at step 200." in found.sentence


def test_a_run_without_an_end_diverged_whichever_side_it_is_on():
    gone = result("broken", None, accuracy=None, diverged="Its loss became no number at step 7.")
    found = comparing.usual(result(), gone)
    assert found.kind == "diverged"
    assert "step 7" in found.sentence
    assert "“usual” ends with 97.0% right" in found.sentence
    assert comparing.usual(gone, result()).kind == "saved"
    assert comparing.usual(gone, gone).kind == "same"


def test_who_is_right_only_with_the_truth_before_it_is_fooled_and_no_other():
    honest = result(written=Generated(0.965, 200))
    cheat = result("no mask", 0.989, written=Generated(0.015, 200))
    found = comparing.fooled(honest, cheat)
    assert found.kind == "fooled"
    assert "98.9% of unseen sequences right" in found.sentence
    assert "**1.5%** of 200 right; “usual” 96.5%" in found.sentence
    assert "look perfect" in found.sentence
    honest, other = (result(name, written=Generated(0.965, 200)) for name in ("usual", "no mask"))
    found = comparing.fooled(honest, other)
    assert found.kind == "same"
    assert "96.5% of 200 right" in found.sentence


def test_tokens_are_counted_in_any_order_and_wrong_ones_told_apart():
    right = result()
    shuffled = result("no positions", 0.02, accuracy=0.5, written=Generated(0.03, 200, 0.96))
    found = comparing.unordered(right, shuffled)
    assert found.kind == "unordered"
    assert "96.0%" in found.sentence
    lost = result("no positions", 0.02, accuracy=0.1, written=Generated(0.02, 200, 0.4))
    assert comparing.unordered(right, lost).kind == "worse"
    assert (
        comparing.unordered(right, result("no positions", written=Generated(1.0, 200, 1.0))).kind
        == "same"
    )
    for answer, truth, share in [
        ("abc", "cab", 1.0),
        ("abb", "aab", 2 / 3),
        ("", "ab", 0.0),
        ("abcd", "ab", 0.5),
        ("", "", 0.0),
    ]:
        assert in_any_order(list(answer), list(truth)) == pytest.approx(share)


def test_smoothing_gradients_and_probabilities_are_held_against_what_they_are():
    sure = result(confidence=0.998, loss=0.004)
    found = comparing.smoothed(sure, result("smooth", confidence=0.9, loss=0.11))
    assert found.kind == "unsure"
    assert "90.0% on average, not 99.8%" in found.sentence
    assert "0.110 against 0.004" in found.sentence
    found = comparing.smoothed(sure, result("smooth", confidence=0.995, loss=0.002))
    assert found.kind == "same"
    assert "as confident" in found.sentence
    worse = comparing.smoothed(sure, result("smooth", 0.2, confidence=0.5))
    assert worse.kind == "worse"
    calm = result(largest_gradient=5.9)
    found = comparing.roughened(calm, result("no norm", largest_gradient=48.4))
    assert found.kind == "rougher"
    assert "48.4, 8 times that of “usual” (5.9)" in found.sentence
    found = comparing.roughened(calm, result("no norm", largest_gradient=7.0))
    assert found.kind == "same"
    assert "no larger" in found.sentence
    found = comparing.roughened(calm, result("no norm", 0.1, largest_gradient=48.4))
    assert found.kind == "worse"
    broken = result("broken", 0.1, guessing=4.2485, training_loss=3.49)
    found = comparing.twice_squashed(result(), broken)
    assert found.kind == "worse"
    assert "ends at 3.49" in found.sentence
    assert "has 3.27" in found.sentence
    certain = torch.eye(70)  # probabilities, given to a loss that takes logits
    assert comparing.lowest_of_probabilities(70) == pytest.approx(
        float(torch.nn.functional.cross_entropy(certain, torch.arange(70))), abs=1e-5
    )


@pytest.mark.parametrize(
    ("second", "words"),
    [(0.8, "puts 80%"), (0.1, "look alike"), (0.31, "both put as much")],
)
def test_another_scale_is_seen_in_how_sharply_attention_begins(second, words):
    found = comparing.sharpened(result(sharpness=0.3), result("other", sharpness=second))
    assert words in found.sentence
    assert found.kind == "same"

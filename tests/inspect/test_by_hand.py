"""Attention by hand: its numbers are the layer's, its arithmetic is true, its learning is real."""

import math
import re

import numpy as np
import pytest
import torch

from tfm_core.inspect import by_hand, by_hand_text
from tfm_core.inspect.by_hand import (
    FORMS,
    agree,
    attend,
    forms,
    layer,
    learn,
    mask_of,
    multi_head,
    one_hot,
    random_matrices,
    targets_of,
)
from tfm_core.inspect.by_hand_text import rounded, table_of, words_of
from tfm_core.probe.capture import capture

WORDS = ("I", "love", "AI")
BLIND = np.array([[0, 0, 0, 0, 0], *[[1, 0, 1, 1, 0]] * 4], np.bool_)
ALLOWED = {
    "none": mask_of("none", 5),
    "causal": mask_of("causal", 5),
    "padding": mask_of("padding", 5),
    "blind": BLIND,
}


def vectors(n_words=5, d_model=6):
    return by_hand.random_vectors(n_words, d_model, 3)


@pytest.mark.parametrize("mask", ALLOWED)
@pytest.mark.parametrize("n_heads", [1, 2, 3])
def test_every_number_is_what_the_layer_records(n_heads, mask):
    x, matrices, allowed = vectors(), random_matrices(6, 2), ALLOWED[mask]
    found = multi_head(x, matrices, n_heads, allowed)
    own = layer(matrices, n_heads)
    with capture(own) as cache:
        output = own(torch.tensor(x)[None], mask=torch.tensor(allowed))
    for head, one in enumerate(found.heads):
        pairs = {
            "query": one.query,
            "key": one.key,
            "value": one.value,
            "scores": one.scores,
            "masked_scores": one.masked,
            "weights": one.weights,
            "heads": one.output,
        }
        for name, mine in pairs.items():
            layers = cache[f".{name}"][0, head].numpy()
            np.testing.assert_allclose(mine, layers, rtol=1e-4, atol=2e-5, err_msg=name)
    np.testing.assert_allclose(found.joined, cache[".merged"][0].numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.output, output[0].detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_scaled", [True, False])
@pytest.mark.parametrize("mask", ALLOWED)
def test_the_steps_follow_from_each_other(mask, is_scaled):
    x, allowed = vectors(), ALLOWED[mask]
    found = attend(x, x, x, allowed, is_scaled=is_scaled)
    scale = math.sqrt(6) if is_scaled else 1.0
    np.testing.assert_allclose(found.products, x @ x.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.scores, found.products / scale, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.totals, found.exponentials.sum(1), rtol=1e-5)
    seen = allowed.any(1)
    shares = found.exponentials[seen] / found.totals[seen, None]
    np.testing.assert_allclose(found.weights[seen], shares, rtol=1e-5, atol=1e-7)
    assert (found.weights[~allowed] == 0).all()
    np.testing.assert_allclose(found.output, found.weights @ x, rtol=1e-5, atol=1e-6)


def numbers_in(line):
    return [float(part) for part in re.findall(r"-?\d+\.\d+", line.replace("−", "-"))]


@pytest.mark.parametrize("query", range(5))
def test_the_written_arithmetic_comes_out(query):
    x = vectors()
    found = attend(x, x[::-1].copy(), x, ALLOWED["causal"])
    for key in range(5):
        *factors, total = numbers_in(by_hand_text.score(found, query, key, ("a", "b")))
        assert sum(a * b for a, b in zip(factors[::2], factors[1::2], strict=True)) == (
            pytest.approx(total, abs=2e-4)
        )
        before, again, root, after = numbers_in(by_hand_text.scaled(found, query, key))
        assert before == again
        assert before / root == pytest.approx(after, abs=2e-4)
    _sum, values, share = by_hand_text.softmaxed(found, query, 0)
    *parts, total = numbers_in(values)
    assert sum(parts) == pytest.approx(total, abs=5e-4)
    one, all_of_it, weight = numbers_in(share)
    assert one / all_of_it == pytest.approx(weight, abs=2e-4)
    *factors, total = numbers_in(by_hand_text.summed(found, query, 2))
    assert sum(a * b for a, b in zip(factors[::2], factors[1::2], strict=True)) == (
        pytest.approx(total, abs=2e-3)
    )


@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
@pytest.mark.parametrize("n_heads", [1, 2, 3, 6])
def test_all_forms_give_the_same_numbers(n_heads, mask):
    found = forms(vectors(), random_matrices(6, 4), n_heads, ALLOWED[mask])
    assert [form.name for form in found][1:] == list(FORMS)
    assert agree(found)  # float32: some processors differ by 1.2e-5, of values up to 17
    for form in found:
        if form.weights is not None:
            np.testing.assert_allclose(form.weights, found[0].weights, atol=1e-6)
        assert form.code.strip().startswith("def ")


def test_all_forms_give_the_same_and_a_step_is_the_gradient():
    found = {form.name: form for form in forms(vectors(), random_matrices(6, 4), 2, BLIND)}
    assert not agree(tuple(found.values()))
    assert math.isnan(found.pop("nn.MultiheadAttention").difference)
    assert agree(tuple(found.values()), 1e-5)
    start, rate, nudge = random_matrices(3, 1), 0.5, 1e-3
    allowed, x = mask_of("causal", 3), one_hot(3, 3)
    losses, _weights, matrices = learn(x, start, {2: 1}, allowed, n_steps=1, rate=rate)
    moved = start.query.copy()
    moved[2, 1] += nudge
    changed = by_hand.Matrices(moved, start.key, start.value, start.out)
    slope = (learn(x, changed, {2: 1}, allowed, n_steps=0)[0][0] - losses[0]) / nudge
    step = matrices[1].query[2, 1] - start.query[2, 1]
    assert step == pytest.approx(-rate * slope, rel=0.02, abs=1e-4)


@pytest.mark.parametrize("target", [(2, 1), (0, 2), (1, 1)])
def test_a_few_steps_make_a_word_attend_where_it_should(target):
    query, key = target
    losses, weights, matrices = learn(
        one_hot(3, 3), random_matrices(3, 1), {query: key}, mask_of("none", 3), n_steps=40
    )
    assert len(losses) == len(weights) == len(matrices) == 41
    assert losses[-1] < losses[0]
    assert weights[-1, query, key] > 0.95
    np.testing.assert_allclose(losses, -np.log(weights[:, query, key]), rtol=1e-4)
    learned = multi_head(one_hot(3, 3), matrices[-1], 1, mask_of("none", 3))
    np.testing.assert_allclose(learned.heads[0].weights, weights[-1], rtol=1e-5)
    assert (matrices[-1].value == random_matrices(3, 1).value).all()
    np.testing.assert_allclose(matrices[0].query, random_matrices(3, 1).query)


def test_heads_targets_and_numbers_that_cannot_be_are_said():
    none = mask_of("none", 3)
    with pytest.raises(ValueError, match="at least one pair"):
        learn(one_hot(3, 3), random_matrices(3, 1), {}, none)
    with pytest.raises(ValueError, match="mask keeps word 1 from attending to word 3"):
        learn(one_hot(3, 3), random_matrices(3, 1), {0: 2}, mask_of("causal", 3))
    with pytest.raises(ValueError, match="to both “love” and “AI”"):
        targets_of([(0, 1), (0, 2)], WORDS)
    with pytest.raises(ValueError, match=r"4 heads cannot share 6 numbers .* 2 or 3 or 6 heads"):
        multi_head(vectors(), random_matrices(6, 1), 4, ALLOWED["none"])
    with pytest.raises(ValueError, match="row 2, column 1"):
        rounded(np.array([[1, 2], [np.nan, 1]]))


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "2 to 6 words"),
        ("one", "2 to 6 words"),
        ("a b c d e f g", "2 to 6 words"),
        ("a " + "b" * 13, "13 letters"),
    ],
)
def test_words_that_cannot_be_shown_are_said(typed, sentence):
    with pytest.raises(ValueError, match=sentence):
        words_of(typed)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("1,2", "is not 2 rows of 2 numbers"),
        ("1,2;3", "is not 2 rows of 2 numbers"),
        ("1,2;3,x", "“x” is not a number"),
        ("1,2;3,1e9", "“1e9” is not a number"),
        ("1,2;3,11", "11 is not between"),
        ("nan,2;3,1", "“nan” is not a number"),
        ("__import__('os'),2;3,1", "is not a number"),
    ],
)
def test_vectors_of_a_link_that_cannot_be_are_said(typed, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        table_of(typed, "X", 2, 2)


def test_questions_are_answered_by_numbers_and_words_keep_their_vectors():
    x = one_hot(3, 3)
    none = mask_of("none", 3)
    scaled, plain = (attend(x, x, x, none, is_scaled=s) for s in (True, False))
    asked = by_hand_text.about_scale(scaled, plain, WORDS, 2)
    assert asked.answer in asked.options
    assert asked.answer == f"{math.e / (math.e + 2):.2f}"
    back = by_hand_text.about_scale(scaled, plain, WORDS, 2, is_scaled=False)
    assert back.answer == f"{math.e ** (1 / 3**0.5) / (math.e ** (1 / 3**0.5) + 2):.2f}"
    assert f"a weight of {math.e / (math.e + 2):.2f}" in back.text
    for question in (asked, back):
        assert all(question.why_not(o) for o in question.options if o != question.answer)
    assert by_hand_text.about_symmetry(scaled, WORDS).answer.startswith("Yes")
    (head,) = multi_head(x, random_matrices(3, 1), 1, none).heads
    assert by_hand_text.about_symmetry(head, WORDS).answer.startswith("No")
    assert by_hand_text.about_heads(vectors(), 3).is_right(2)
    size = by_hand_text.about_size(vectors(), 3)
    assert size.is_right(layer(random_matrices(6, 1), 3).in_projection.weight.numel())
    x, none = vectors(), mask_of("none", len(vectors()))
    attended = multi_head(x, random_matrices(x.shape[1], 1), 2, none)
    asked = by_hand_text.about_minus_one(attended, WORDS)
    heads = torch.tensor(np.stack([head.output for head in attended.heads]))
    merged = heads.transpose(0, 1).reshape(len(x), -1)
    assert asked.is_right(merged.shape[1])
    np.testing.assert_allclose(merged, attended.joined, atol=1e-6)
    direct = heads.reshape(len(x), -1)
    for row in (merged[0], direct[0]):
        assert ", ".join(f"{number:.2f}" for number in row[:6].tolist()) in asked.because
    assert (
        by_hand_text.about_minus_one(multi_head(x, random_matrices(x.shape[1], 1), 1, none), WORDS)
        is None
    )
    made = by_hand.keep_vectors(("love", "you"), 3, {"love 1": [0.5, 2.0]})
    np.testing.assert_allclose(made, [[0.5, 2.0, 0.0], [0.5, 0.75, 0.0]])
    assert by_hand.unique_names(("the", "cat", "the")) == ("the 1", "cat 1", "the 2")


@pytest.mark.parametrize("width", [2, 3])
def test_queries_times_keys_that_are_not_transposed_fail_or_compare_no_words(width):
    x, none = one_hot(3, 3)[:, :width], mask_of("none", 3)
    (head,) = multi_head(x, random_matrices(width, 1), 1, none).heads
    asked = by_hand_text.about_transposed_keys(head, WORDS)
    assert f"{head.query[0] @ head.key[1]:.4f}" in asked.because
    if width == 2:
        assert asked.answer == "An error"
        with pytest.raises(ValueError, match="mismatch"):
            head.query @ head.key
    else:
        assert asked.answer.startswith("Numbers")
        assert f"{(head.query @ head.key)[0, 1]:.4f}" in asked.because
    assert all(asked.why_not(one) for one in asked.options if one != asked.answer)

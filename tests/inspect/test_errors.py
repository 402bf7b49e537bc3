"""What is counted of answers is what counting by hand gives."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.inspect.constructed import text_experiment, vit_experiment
from tests.inspect.made_answers import made
from tfm_core.inspect.conclusions import wilson
from tfm_core.inspect.errors import (
    GROUPINGS,
    OTHERS,
    answers_in_cell,
    bands,
    calibration,
    confusion,
    corpus_scores,
    groupings,
    hard_tokens,
    least_confident,
    n_short,
    patterns_of,
    token_class,
    worst_answers,
)
from tfm_core.plots import examples as plots

TRUTH = [0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 1]
SAID = [0, 2, 1, 0, 0, 2, 2, 1, 2, 0, 2]


def test_confidences_groups_and_cells_are_counted_once_as_by_hand() -> None:
    counts, wrong = confusion(made(TRUTH, SAID, 3))
    assert counts.to_numpy().tolist() == [[2, 0, 1], [2, 1, 1], [0, 1, 3]]
    assert wrong.to_numpy().tolist() == [[0, 0, 1], [2, 0, 1], [0, 1, 0]]
    assert counts.index.tolist() == [0, 1, 2]
    confidence = np.array([0.0, 0.25, 0.2501, 0.5, 0.75, 0.7499, 1.0], np.float32)
    bins, _error = calibration(confidence, confidence > 0.4, 4)
    assert bins["middle"].tolist() == [0.125, 0.375, 0.625, 0.875]
    assert bins["n"].tolist() == [2, 2, 2, 1]
    values = np.random.default_rng(2).integers(1, 60, 997)
    found = bands(values)
    assert len(found) <= 10
    assert [sum(low <= v <= high for low, high in found) for v in np.unique(values)] == [1] * 59
    assert bands(np.array([3, 3, 5])) == [(3, 3), (5, 5)]
    answers, experiment = made(TRUTH, SAID, 3), vit_experiment()
    assert list(groupings(answers, experiment)) == ["class"]
    groups = GROUPINGS["class"].groups(answers, experiment)
    assert groups[["label", "n", "n_right"]].to_numpy().tolist() == [
        ["class 0", 3, 2],
        ["class 1", 4, 1],
        ["class 2", 4, 3],
    ]
    assert tuple(groups.loc[1, ["low", "high"]]) == wilson(1, 4)
    assert groups["loss"][0] == pytest.approx(answers.loss[[0, 1, 9]].mean())
    assert groups["accuracy"].tolist() == pytest.approx([2 / 3, 1 / 4, 3 / 4])


@pytest.mark.parametrize("seed", [3, 5])
def test_many_classes_are_told_apart_by_their_errors_and_no_answer_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    truth = [chance.randrange(29) for _ in range(701)]
    predicted = [n if chance.random() < 0.6 else chance.randrange(29) for n in truth]
    answers = made(truth, predicted, 29)
    counts, wrong = confusion(answers, most=7)
    numbers = counts.index.tolist()
    assert numbers[-1] == OTHERS
    assert len(numbers) == 7
    assert counts.to_numpy().sum() == 701
    pairs, named = list(zip(truth, predicted, strict=True)), numbers[:-1]
    for a in numbers:
        for b in numbers:
            cell = [
                (t, s)
                for t, s in pairs
                if (t == a if a != OTHERS else t not in named)
                and (s == b if b != OTHERS else s not in named)
            ]
            assert counts.loc[a, b] == len(cell)
            assert wrong.loc[a, b] == sum(t != s for t, s in cell)
            assert len(answers_in_cell(answers, numbers, (a, b))) == len(cell)
    errors = {n: sum((t == n) + (s == n) for t, s in pairs if t != s) for n in range(29)}
    left = max(errors[n] for n in range(29) if n not in numbers)
    assert min(errors[n] for n in named) >= left
    assert len(answers_in_cell(answers, numbers, (400, 3))) == 0


@pytest.mark.parametrize("n_bins", [10, 7])
def test_the_calibration_error_is_the_sum_over_every_answer_of_its_bin(n_bins: int) -> None:
    rng = np.random.default_rng(11)
    confidence = rng.random(613).astype(np.float32)
    confidence[:2] = 1.0, 0.0
    is_right = rng.random(613) < confidence**2
    total, bins = 0.0, {}
    for share, right in zip(confidence.tolist(), is_right.tolist(), strict=True):
        place = next(k for k in range(n_bins) if share <= (k + 1) / n_bins)
        bins.setdefault(place, []).append((share, right))
    for members in bins.values():
        shares, rights = zip(*members, strict=True)
        total += len(members) / 613 * abs(sum(rights) / len(rights) - sum(shares) / len(shares))
    found, error = calibration(confidence, is_right, n_bins)
    assert error == pytest.approx(total, abs=1e-9)
    assert found["n"].tolist() == [len(bins[place]) for place in sorted(bins)]
    assert found["n_right"].sum() == is_right.sum()
    means = [np.mean([share for share, _right in bins[place]]) for place in sorted(bins)]
    assert found["confidence"].tolist() == pytest.approx(means)
    for one in found.itertuples():
        assert (one.low, one.high) == wilson(one.n_right, one.n)
    assert plots.reliability(found).data[0].text == tuple(map(str, found["n"]))


def test_the_worst_come_first_and_hard_tokens_cost_their_losses() -> None:
    answers = made(TRUTH, SAID, 3)
    wrong = [1, 3, 4, 7, 10]
    assert worst_answers(answers, "loss").tolist() == wrong  # losses fall
    assert worst_answers(answers, "sure").tolist() == wrong[::-1]  # confidences rise
    chosen = answers_in_cell(answers, [0, 1, 2], (1, 0))
    assert worst_answers(answers, "sure", chosen).tolist() == [4, 3]
    right = answers_in_cell(answers, [0, 1, 2], (2, 2))
    assert worst_answers(answers, "loss", right).tolist() == [5, 6, 8]
    assert least_confident(made([0, 1], [0, 1], 2), 5).tolist() == [0, 1]
    assert worst_answers(made([0, 1], [0, 1], 2), "loss").tolist() == []
    answers = made(TRUTH, SAID, 3, unit="token")
    first = hard_tokens(answers)
    assert first.index.tolist() == [0, 1, 2]
    by_hand = [answers.loss[np.array(TRUTH) == n] for n in range(3)]
    assert first["loss"].tolist() == pytest.approx([losses.mean() for losses in by_hand])
    assert first["n"].tolist() == list(map(len, by_hand))
    assert first["share"].sum() == pytest.approx(1)
    assert first["instead"].tolist() == [2, 0, 1]


def test_the_patterns_of_an_example() -> None:
    for task, src, wanted in [
        ("english-korean", "the dog sleeps", {"subject, verb"}),
        (
            "english-korean",
            "a kind teacher and a dog see the cat today",
            {"subject, verb, object", "two nouns joined by “and”", "an adjective", "a time"},
        ),
        ("english-korean", "the child comes to the park", {"subject, verb, place"}),
        ("english-korean", "the dog sleeps and the cat plays", {"two clauses"}),
        ("english-korean", "no sentence of it", set()),
        ("sentiment", "not good but bad", {"several clauses", "“not”", "“but”"}),
        ("addition", "1 2 + 3 4", {"no carry"}),
        ("addition", "9 9 + 1", {"2 carries"}),
        ("addition", "5 + 7", {"one carry"}),
        ("reverse", "a b a", {"a repeated token"}),
        ("span-corruption", "the <extra_id_0> sleeps", {"one span hidden"}),
    ]:
        experiment = text_experiment()
        size = {
            "english-korean": 2,
            "sentiment": 2,
            "addition": 2,
            "span-corruption": 30,
            "reverse": 5,
        }
        parts = experiment.model_dump() | {"task": {"kind": "text", "name": task}}
        if task in size:
            parts["task"]["size"] = size[task]
        found = patterns_of(_experiment(parts), {"src": src.split(" "), "tgt": []})
        assert set(found) == wanted


def _experiment(parts: dict) -> object:
    from tfm_core.choices.config import Experiment

    if parts["task"]["name"] == "sentiment":
        model = {"family": "encoder-only", "d_model": 12, "n_heads": 3, "n_layers": 2}
        parts = parts | {"model": model}
    return Experiment.parse(parts)


def test_tokens_have_their_kind_and_cells_of_others_no_colour() -> None:
    korean = _experiment(
        text_experiment().model_dump()
        | {"task": {"kind": "text", "name": "english-korean", "size": 1}}
    )
    found = {token: token_class(token, korean) for token in ("개", "는", "본", "<eos>", "큰")}
    assert list(map(str, found.values())) == [
        "animals",
        "particle or ending",
        "verb, present",
        "end of text",
        "adjective",
    ]
    numbers = text_experiment()
    looks = {"7": "digit", "42": "number", ",": "sign", " ": "space", "\n": "line break"}
    looks |= {
        "A": "capital letter",
        "z": "letter",
        "Alice": "word with a capital",
        "rabbit": "word",
    }
    assert {token: token_class(token, numbers) for token in looks} == looks
    truth = ["guten Tag zusammen und danke", "ja gern und noch viel mehr"]
    assert corpus_scores(truth, truth, are_words=False).keys() == {"chrF"}
    counts = np.array([[5, 2, 1], [0, 7, 0], [3, 0, 590]])
    wrong = np.array([[0, 2, 1], [0, 0, 0], [3, 0, 27]])
    heatmap = plots.confusion(counts, ["a", "b", "…"], wrong=wrong, top=2).data[0]
    assert np.isnan(heatmap.z[2][2])
    assert heatmap.z[0][1] == 2
    assert "590" in heatmap.hovertext[2][2]
    assert "27 wrong" in heatmap.hovertext[2][2]


WORDS = ["나는", "작은", "고양이를", "봅니다", ".", "old", "trees", "don't", "fall", "2"]


def texts(seed: int, n: int = 61) -> tuple[list[str], list[str]]:
    """Return texts of 1 to 11 words and answers of which a word in four was changed or left out."""
    chance = random.Random(seed)
    truth = [chance.choices(WORDS, k=chance.randint(1, 11)) for _ in range(n)]
    predicted = [
        [chance.choice([word, word, word, chance.choice(WORDS), ""]) for word in words]
        for words in truth
    ]
    return [" ".join(filter(None, words)) for words in predicted], [
        " ".join(words) for words in truth
    ]


@pytest.mark.parametrize("seed", [3, 7])
def test_both_scores_are_those_of_the_command_on_the_same_files(tmp_path: Path, seed: int) -> None:
    predicted, truth = texts(seed)
    answers, references = tmp_path / "predicted.txt", tmp_path / "truth.txt"
    answers.write_text("\n".join(predicted) + "\n", encoding="utf-8")
    references.write_text("\n".join(truth) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", str(references), "-i", str(answers)]
    options = ["-m", "bleu", "chrf", "--tokenize", "none", "--force", "-w", "9"]
    printed = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    wanted = {one["name"]: one for one in json.loads(printed.stdout)}
    found = corpus_scores(predicted, truth)
    for name, theirs in (("BLEU", "BLEU"), ("chrF", "chrF2")):
        score, signature = found[name]
        assert score == pytest.approx(wanted[theirs]["score"], abs=1e-8)
        assert signature == wanted[theirs]["signature"]
        assert 10 < score < 95


@pytest.mark.parametrize(("seed", "longest"), list(enumerate([1, 2, 3, 4, 7, 11])))
def test_a_model_that_is_right_everywhere_has_bleu_100_or_none(seed: int, longest: int) -> None:
    chance = random.Random(seed)
    truth = [" ".join(chance.choices(WORDS, k=chance.randint(1, longest))) for _ in range(23)]
    found = corpus_scores(truth, truth)
    assert n_short(truth) == sum(text.count(" ") < 3 for text in truth)
    assert ("BLEU" not in found) == (n_short(truth) > 23 / 2)
    assert all(score == pytest.approx(100) for score, _signature in found.values())

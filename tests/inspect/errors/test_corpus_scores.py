"""BLEU and chrF are those of sacrebleu's own command on the same files."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tfm_core.inspect.errors.scores import corpus_scores

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
    for score, name in ((found.bleu, "BLEU"), (found.chrf, "chrF2")):
        assert score is not None
        assert score.value == pytest.approx(wanted[name]["score"], abs=1e-8)
        assert score.signature == wanted[name]["signature"]
        assert 10 < score.value < 95


def test_texts_that_are_all_right_score_100_and_texts_without_a_common_letter_0() -> None:
    truth = ["one two three four five", "six seven eight nine ten"]
    right, wrong = corpus_scores(truth, truth), corpus_scores(["", ""], truth)
    assert right.bleu is not None
    assert wrong.bleu is not None
    assert right.bleu.value == pytest.approx(100)
    assert right.chrf.value == pytest.approx(100)
    assert corpus_scores(["ㄱ ㄴ ㄷ ㄹ", ""], truth).chrf.value == 0
    assert wrong.bleu.value == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("longest", [1, 2, 3, 4, 7, 11])
def test_a_model_that_is_right_everywhere_has_bleu_100_or_none(seed: int, longest: int) -> None:
    chance = random.Random(seed)
    truth = [" ".join(chance.choices(WORDS, k=chance.randint(1, longest))) for _ in range(23)]
    found = corpus_scores(truth, truth)
    assert found.n_short == sum(text.count(" ") < 3 for text in truth)
    assert (found.bleu is None) == (found.n_short > 23 / 2)
    assert found.bleu is None or found.bleu.value == pytest.approx(100)
    assert found.chrf.value == pytest.approx(100)


def test_what_is_not_words_has_no_bleu() -> None:
    truth = ["guten Tag zusammen und danke", "ja gern und noch viel mehr"]
    assert corpus_scores(truth, truth, are_words=False).bleu is None

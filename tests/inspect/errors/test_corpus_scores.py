"""BLEU and chrF are those of sacrebleu's own command on the same files."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tfm_core.inspect.errors.corpus_scores import corpus_scores

WORDS = ["나는", "작은", "고양이를", "봅니다", ".", "old", "trees", "don't", "fall", "2"]


def texts(seed: int, n: int = 61) -> tuple[list[str], list[str]]:
    """Return texts of 1 to 11 words and answers of which a word in four was changed or left out."""
    chance = random.Random(seed)
    truth = [chance.choices(WORDS, k=chance.randint(1, 11)) for _ in range(n)]
    said = [
        [chance.choice([word, word, word, chance.choice(WORDS), ""]) for word in words]
        for words in truth
    ]
    return [" ".join(filter(None, words)) for words in said], [" ".join(words) for words in truth]


@pytest.mark.parametrize("seed", [3, 7])
def test_both_scores_are_those_of_the_command_on_the_same_files(tmp_path: Path, seed: int) -> None:
    said, truth = texts(seed)
    answers, references = tmp_path / "said.txt", tmp_path / "truth.txt"
    answers.write_text("\n".join(said) + "\n", encoding="utf-8")
    references.write_text("\n".join(truth) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", str(references), "-i", str(answers)]
    options = ["-m", "bleu", "chrf", "--tokenize", "none", "--force", "-w", "9"]
    printed = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    wanted = {one["name"]: one for one in json.loads(printed.stdout)}
    found = corpus_scores(said, truth)
    for score, name in ((found.bleu, "BLEU"), (found.chrf, "chrF2")):
        assert score.value == pytest.approx(wanted[name]["score"], abs=1e-8)
        assert score.signature == wanted[name]["signature"]
        assert 10 < score.value < 95


def test_texts_that_are_all_right_score_100_and_texts_without_a_common_letter_0() -> None:
    truth = ["one two three four five", "six seven eight nine ten"]
    assert corpus_scores(truth, truth).bleu.value == pytest.approx(100)
    assert corpus_scores(truth, truth).chrf.value == pytest.approx(100)
    assert corpus_scores(["ㄱ ㄴ ㄷ ㄹ", ""], truth).chrf.value == 0
    assert corpus_scores(["", ""], truth).bleu.value == 0

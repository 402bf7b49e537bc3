"""The sentences that come along as examples of data of one's own: small English with its German.

German puts the verb first in a question and gives every noun a gender, and its masculine another
article where something is done to it: enough for a model to learn more than a word list.
"""

from __future__ import annotations

import random

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
    "today", "tomorrow", "this morning", "on monday", "in the evening", "again", "this week",
    "last night", "every day", "after work",
)  # fmt: skip
_BEGUN = ("", "well, ", "i think ", "they say ")
_N_LABELLED = 480


def pairs() -> str:
    """Return tab-separated pairs, the same each time."""
    rng = random.Random(0)
    found: dict[str, str] = {}
    while len(found) < _N_PAIRS:
        english, german = _pair(rng)
        found[_begun(english)] = _begun(german)
    return "".join(f"{english}\t{german}\n" for english, german in found.items())


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _pair(rng: random.Random) -> tuple[str, str]:
    who, whom = rng.sample(list(_NOUNS), 2)
    does = rng.choice(list(_VERBS))
    when = rng.choice(list(_TIMES))
    infinitive, tut = _VERBS[does]
    subject = f"{_NOUNS[who][0]} {_SUBJECTS.get(who, _NOUNS[who][2])}"
    thing = f"{_NOUNS[whom][1]} {_NOUNS[whom][2]}"
    asked = rng.random() < 0.3
    if asked:
        english = f"does the {who} {infinitive} the {whom} {when}".strip() + "?"
        return english, " ".join(f"{tut} {subject} {thing} {_TIMES[when]}".split()) + "?"
    english = f"the {who} {does} the {whom} {when}".strip() + "."
    if when == "today":
        return english, f"heute {tut} {subject} {thing}."
    return english, " ".join(f"{subject} {tut} {thing} {_TIMES[when]}".split()) + "."


def labelled() -> str:
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

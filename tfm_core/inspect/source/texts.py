"""How a generated file cuts a text into tokens and joins tokens into a text, task by task, as text.

Each is what ``TextTask.tokenize`` and ``join_tgt`` do, in lines that need nothing but ``re``; they
are tested against them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import dedent

from tfm_core.config import CaptionTaskConfig, CorpusTaskConfig, OwnTextTaskConfig, TextTaskConfig
from tfm_core.data.corpus.task import corpus_task
from tfm_core.data.own.task import own_task
from tfm_core.data.own.tokens import LABEL, Cutter
from tfm_core.data.text.dates import MONTHS, WEEKDAYS
from tfm_core.data.text.english_korean import SUFFIXES
from tfm_core.data.text.korean_words import FULL_STOP_ENDING
from tfm_core.data.vocabulary import MASK
from tfm_core.variants.languages import LANGUAGES
from tfm_core.variants.record import resolve
from tfm_core.variants.units import (
    CLOSING,
    HIDDEN,
    LETTERS,
    OPENING,
    SIGN,
    SKIN_TONES,
    SPACED_PATTERN,
)

MOST_COLUMNS = 96


@dataclass(frozen=True, slots=True)
class Spelling:
    """cut: the source of ``cut(text)``; join: of ``joined(words)``; lists: of what both look up."""

    cut: str
    join: str
    lists: str = ""


def listed(name: str, values: Iterable[str], opened: str = "[", closed: str = "]") -> str:
    """Return an assignment of many values, in lines that are not too long."""
    lines, line = [f"{name} = {opened}"], "   "
    for value in values:
        word = f" {json.dumps(value, ensure_ascii=False)},"
        if len(line) + len(word) > MOST_COLUMNS:
            lines, line = [*lines, line], "   "
        line += word
    return "\n".join([*lines, line, closed, ""])


def cut_by(expression: str, doc: str) -> str:
    """Return the source of ``cut``."""
    return f'def cut(text):\n    """{doc}"""\n    return {expression}\n'


def joined_by(separator: str, doc: str) -> str:
    """Return the source of ``joined``, with a separator between two words."""
    return f'def joined(words):\n    """{doc}"""\n    return "{separator}".join(words)\n'


WORDS = cut_by(
    r're.sub(r"[\s.,!?;]+", " ", text.lower()).split()', "Words, in any case, without signs."
)
_MASKED = dedent(f'''\
    def cut(text):
        """Words, in any case, without signs; ___ is a hidden one."""
        words = re.sub(r"[\\s.,!?;]+", " ", text.lower()).split()
        return ["{MASK}" if re.fullmatch("_{{2,}}", word) else word for word in words]
    ''')
_SPANS = dedent('''\
    def cut(text):
        """Words, in any case, without signs; ___ is a hidden span: the first becomes sentinel 0."""
        words = re.sub(r"[\\s.,!?;]+", " ", text.lower()).split()
        n = 0
        for at, word in enumerate(words):
            if re.fullmatch(r"_{2,}|<extra_id_\\d+>", word):
                words[at], n = f"<extra_id_{n}>", n + 1
        return words
    ''')
_SENTIMENT = dedent('''\
    def cut(text):
        """Words, in any case, without signs; short forms are written out."""
        text = re.sub("(is|was)n['’]t", r"\\1 not", text.lower())
        return re.sub(r"[\\s.,!?;]+", " ", text).split()
    ''')
_NUMBERS = cut_by(
    r're.sub(r"[-\s,.]+", " ", text.lower()).split()', "Words, with or without hyphens."
)
_SYMBOLS = cut_by(r'list(re.sub(r"[\s,;]+", "", text.lower()))', "Single symbols.")
_SUM = cut_by(r'list(re.sub(r"\s+", "", text).removesuffix("="))', "Characters, without spaces.")
_DATES = dedent('''\
    def cut(text):
        """Characters; names of months and days begin with a capital letter, all else is small."""

        def cased(found):
            name = found[0].capitalize()
            return name if name in NAMES else name.lower()

        return list(re.sub("[A-Za-z]+", cased, " ".join(text.split()).removesuffix(".")))
    ''')
_SENTENCE = dedent(f'''\
    def joined(words):
        """A sentence; a word that stayed hidden is ___."""
        text = " ".join(words).replace("{MASK}", "___")
        return f"{{text[:1].upper()}}{{text[1:]}}."
    ''')
_JOINED_WORDS = dedent(f"""\
    def joined(words):
        \"\"\"Words with spaces between them; signs and quotes stand where they belong.\"\"\"
        text = re.sub(r" *\\n *", "\\n", " ".join(words))
        text = re.sub(r" ([{CLOSING}])", r"\\1", text)
        text = re.sub(r"([{OPENING}]) ", r"\\1", text)
        text = re.sub(r'" ([^"\\n]*) "', r'"\\1"', text)
        return re.sub(r"(„[^„“\\n]*) “|“ ", lambda found: (found[1] or "") + "“", text)
    """)
_NORMALISED = dedent(f"""\
    def normalised(text):
        \"\"\"Unicode's form NFC, without hidden characters.\"\"\"
        hidden = r"{HIDDEN.pattern}"
        return unicodedata.normalize("NFC", re.sub(hidden, "", text))


    """)
_OUTLINED = dedent(f"""\
    def outlined(text):
        \"\"\"A text as long, whose combining marks are all alike, and whose joiners are.\"\"\"

        def kind(found):
            if found[0] in "\\u200c\\u200d":
                return "\\u200d"
            is_mark = unicodedata.category(found[0]).startswith("M")
            return "\\u0300" if is_mark or re.match("[{SKIN_TONES}]", found[0]) else found[0]

        return re.sub(r"[^\\w\\s!-~]", kind, text)


    LETTERS = r"{LETTERS}"
    SIGN = r"{SIGN}"


    """)


def _cut_as_typed(expression: str, doc: str) -> str:
    """Return the source of ``cut`` of a normalised text."""
    return (
        f'{_NORMALISED}def cut(text):\n    """{doc}"""\n    text = normalised(text)\n'
        f"    return {expression}\n"
    )


def _running(doc: str, breaks: str = "") -> str:
    """Return the source of ``cut`` into words and signs. breaks: what else is a token."""
    return (
        f'{_NORMALISED}{_OUTLINED}def cut(text):\n    """{doc}"""\n    text = normalised(text)\n'
        f"""    pattern = rf"{{LETTERS}}(?:['’\\-]{{LETTERS}})*|{{SIGN}}{breaks}"\n"""
        "    found = re.finditer(pattern, outlined(text))\n"
        "    return [text[one.start() : one.end()] for one in found]\n"
    )


_MERGED = f"{_NORMALISED}{_OUTLINED}" + dedent('''\
    def merged(piece, ranks):
        """A piece whose neighbours are merged, the pair that was learned first before others."""
        parts = list(piece)
        while len(parts) > 1:
            pairs = list(zip(parts, parts[1:]))
            best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
            if best not in ranks:
                break
            at, joined_once = 0, []
            while at < len(parts):
                is_best = tuple(parts[at : at + 2]) == best
                joined_once.append("".join(best) if is_best else parts[at])
                at += 2 if is_best else 1
            parts = joined_once
        return parts


    ''')
_PIECES = _MERGED + dedent('''\
    def cut(text):
        """Pieces of words; ▁ is a space."""
        ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(MERGES)}
        text, words = " " + " ".join(normalised(text).replace("▁", " ").split()), []
        for found in re.finditer(rf" ?{LETTERS}| ?{SIGN}", outlined(text)):
            words += merged(text[found.start() : found.end()].replace(" ", "▁"), ranks)
        return words
    ''')
_RUNNING_PIECES = _MERGED + dedent('''\
    def cut(text):
        """Pieces of words, with every space and line break; in MERGES ▁ is a space."""
        ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(MERGES)}
        text, words = normalised(text), []
        short = LETTERS.removesuffix("*") + "{0,63}"
        for found in re.finditer(rf" ?{short}| ?{SIGN}| +(?= )|\\s", outlined(text)):
            piece = text[found.start() : found.end()]
            if "▁" in piece:
                words += piece
            else:
                parts = merged(piece.replace(" ", "▁"), ranks)
                words += [part.replace("▁", " ") for part in parts]
        return words
    ''')
_UNITED = dedent('''\
    def joined(words):
        """Pieces written on; ▁ is a space."""
        return "".join(words).replace("▁", " ").strip()
    ''')
_PLAIN = joined_by("", "Without spaces.")
_SPACED = joined_by(" ", "With spaces.")


def _suffixed(doc: str, ending: str | None) -> str:
    """Return the source of a ``joined`` whose SUFFIXES stand behind a word without a space."""
    text = '"".join(word if word in SUFFIXES else f" {word}" for word in words).strip()'
    head = f'def joined(words):\n    """{doc}"""\n'
    if ending is None:
        return f"{head}    return {text}\n"
    end = f'return f"{{text}}." if words[-1:] == ["{ending}"] else text'
    return f"{head}    text = {text}\n    {end}\n"


_KOREAN = _suffixed("Particles and endings join the word before them.", FULL_STOP_ENDING)

SPELLINGS: dict[str, Spelling] = {
    "english-korean": Spelling(WORDS, _KOREAN, listed("SUFFIXES", sorted(SUFFIXES), "{", "}")),
    "dates": Spelling(
        _DATES,
        _PLAIN,
        listed("NAMES", [*MONTHS, *WEEKDAYS, *dict.fromkeys(m[:3] for m in MONTHS)], "{", "}"),
    ),
    "numbers": Spelling(_NUMBERS, _PLAIN),
    "copy": Spelling(_SYMBOLS, _SPACED),
    "reverse": Spelling(_SYMBOLS, _SPACED),
    "sort": Spelling(_SYMBOLS, _SPACED),
    "addition": Spelling(_SUM, _PLAIN),
    "sentiment": Spelling(_SENTIMENT, _SPACED),
    "masked-words": Spelling(_MASKED, _SENTENCE),
    "span-corruption": Spelling(_SPANS, _SPACED),
}
"""How each text task is cut and joined, by its name in the configuration."""


def _own_spelling(task: OwnTextTaskConfig) -> Spelling:
    """Return how a set's sources are cut and its targets joined; labels are joined as they are."""
    src, tgt = own_task(task).cutters
    cut = {
        "words": _running("Words with their marks, and signs."),
        "spaces": _cut_as_typed(
            f're.findall(r"{SPACED_PATTERN}", text)', "What stands between spaces."
        ),
        "characters": _cut_as_typed('list(" ".join(text.split()))', "Characters."),
        "bpe": _PIECES,
    }[src.unit]
    joins = {
        "words": _JOINED_WORDS,
        "spaces": _SPACED,
        "characters": _PLAIN,
        "bpe": _UNITED,
        LABEL: _SPACED,
    }
    return Spelling(cut, joins[tgt.unit], _merges(src))


def _merges(cutter: Cutter) -> str:
    """Return the list of merges that ``cut`` into pieces reads, nothing for other cuts."""
    if cutter.unit != "bpe":
        return ""
    return listed("MERGES", [" ".join(pair) for pair in cutter.merges])


def spelling_of(
    task: TextTaskConfig | CorpusTaskConfig | CaptionTaskConfig | OwnTextTaskConfig,
) -> Spelling:
    """Return how the texts of a task are cut and joined; captions are only joined."""
    if isinstance(task, CaptionTaskConfig):
        suffixes = resolve(LANGUAGES[task.language].grammar).joined
        return Spelling(
            "",
            _suffixed("Some words join the one before them.", None),
            listed("SUFFIXES", sorted(suffixes), "{", "}"),
        )
    if isinstance(task, OwnTextTaskConfig):
        return _own_spelling(task)
    if isinstance(task, TextTaskConfig):
        return SPELLINGS[task.name]
    if task.unit == "characters":
        return Spelling(_cut_as_typed("list(text)", "Characters."), _PLAIN)
    if task.unit == "bpe":
        return Spelling(_RUNNING_PIECES, _PLAIN, _merges(corpus_task(task).cutter))
    if task.name == "grammar":
        return Spelling(WORDS, _JOINED_WORDS)
    return Spelling(_running("Words, signs and line breaks.", r"|\n"), _JOINED_WORDS)

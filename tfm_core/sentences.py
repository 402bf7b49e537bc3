"""Sentences a page may show: English here, in the reader's language where a page draws them.

The core writes English. ``N_`` marks a sentence that a page may show, so that an extractor finds
it, and keeps its template apart from its values: ``pages/i18n.py`` translates the template and
fills it again. A text longer than a line is a ``Paragraph`` from a content file. Everywhere else a
``Sentence`` is a ``str``, so that logs, run folders and the command line read plain English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Self

from tfm_core import languages

CONTENT_DIR = Path(__file__).parent / "content"


class Sentence(str):
    """English text that remembers its template and the values that fill it.

    ``"{n} steps"`` and ``{"n": 3}`` make ``"3 steps"``. Whatever is cut from it or joined to it is
    plain text, which no catalogue knows: join sentences when they are drawn.
    """

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, values: dict[str, Any] | None = None) -> Self:
        """Fill the template; without values it is taken as it is, braces and all."""
        sentence = super().__new__(cls, template.format(**values) if values else template)
        sentence.template = str(template)
        sentence.values = {name: _kept(value) for name, value in (values or {}).items()}
        return sentence

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made of, for ``copy`` and ``pickle``."""
        return self.template, self.values

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        """Return itself, as any text does: plotly copies the text of each cell twice."""
        return self


def N_(template: str, /, **values: Any) -> Sentence:
    """Mark a text for translation; it is translated where a page draws it."""
    if isinstance(template, Paragraph):
        return Paragraph(template.key, folder=template.folder, **values)
    return Sentence(template, values)


class CountedSentence(Sentence):
    """A sentence with a singular and a plural; each language chooses its form by ``n``."""

    forms: tuple[str, str]
    n: int

    def __new__(cls, one: str, many: str, n: int, values: dict[str, Any]) -> Self:
        """Fill the form that English uses for ``n``; both forms may hold ``{n}``."""
        made = super().__new__(cls, one if n == 1 else many, {"n": n, **values})
        made.forms, made.n = (one, many), n
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made of, for ``copy`` and ``pickle``."""
        return *self.forms, self.n, self.values


def counted(one: str, many: str, n: int, /, **values: Any) -> CountedSentence:
    """Mark a text with a singular and a plural for translation; both forms may hold ``{n}``."""
    return CountedSentence(one, many, n, values)


class Paragraph(Sentence):
    """A text longer than a line, from ``content/<language>/<room>.md``.

    ``Paragraph("rates/warm-up", n=3)`` is what follows the line ``## warm-up`` of ``rates.md``,
    and ``Paragraph("rates/warm-up.label")`` what follows ``- label:`` below that line.
    folder: the content folder, of the core unless given. Raises KeyError for an unknown name and
    FileNotFoundError for an unknown room.
    """

    key: str
    folder: Path | None

    def __new__(cls, key: str, /, *, folder: Any = None, **values: Any) -> Self:
        """Read the English text and fill it."""
        room, _slash, name = key.rpartition("/")
        path = (folder or CONTENT_DIR) / "en" / f"{room}.md"
        made = super().__new__(cls, paragraphs(path)[name], values)
        made.key, made.folder = key, folder
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy is made of, for ``copy`` and ``pickle``."""
        return _paragraph, (self.key, self.folder, self.values)

    def template_in(self, language: str) -> str:
        """Return the template in a language; in English where that language lacks it."""
        folders = tuple(languages.places(self.folder or CONTENT_DIR))
        return _template_in(language, self.key, folders) or self.template


@cache
def _template_in(language: str, key: str, folders: tuple[Path, ...]) -> str:
    """Return a template in a language, from the first folder that has it; "" for none."""
    room, _slash, name = key.rpartition("/")
    paths = (folder / language / f"{room}.md" for folder in folders)
    found = (paragraphs(path).get(name, "") for path in paths if path.is_file())
    return next(filter(None, found), "")


def _paragraph(key: str, folder: Path | None, values: dict[str, Any]) -> Paragraph:
    return Paragraph(key, folder=folder, **values)


@cache
def paragraphs(path: Path) -> dict[str, str]:
    """Return the paragraphs of a file by name; the lines of a list by ``name.label``."""
    parts = re.split(r"^## (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found: dict[str, str] = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        labelled = re.findall(r"^- ([a-z_]+): (.+)$", text, flags=re.MULTILINE)
        found |= {f"{name}.{label}": words.strip() for label, words in labelled}
        if not labelled:
            found[name] = text.strip()
    return found


def words(key: str) -> dict[str, Any]:
    """Return the labelled lines of a choice: ``words("choices/tasks/copy")["help"]``."""
    room, _slash, name = key.rpartition("/")
    found = paragraphs(CONTENT_DIR / "en" / f"{room}.md")
    labels = (each.removeprefix(f"{name}.") for each in found if each.startswith(f"{name}."))
    made = {label: Paragraph(f"{key}.{label}") for label in labels if "." not in label}
    if not made:
        raise KeyError(key)
    return made


Say = Callable[[str], str]
"""Translates a sentence where the core itself writes markup, which has to be text at once."""


def translated(part: Any, say: Say) -> Any:
    """Return a part of a figure with its sentences translated.

    Only what is marked as a ``Sentence`` is translated: a token may be a word of the app too.
    """
    if isinstance(part, Sentence):
        return say(part)
    if isinstance(part, dict):
        return {name: translated(value, say) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [translated(value, say) for value in part]
    return part


def joined(*sentences: str) -> Sentence:
    """Return sentences one behind the other, each still translated by itself."""
    names = [f"sentence_{number}" for number, _sentence in enumerate(sentences, 1)]
    template = " ".join(f"{{{name}}}" for name in names)
    return Sentence(template, dict(zip(names, sentences, strict=True)))


def listed(words: Iterable[str]) -> Sentence:
    """Return words separated by commas, each still translated by itself; empty for none."""
    values = {f"part_{number}": one for number, one in enumerate(words)}
    return Sentence(", ".join(f"{{{name}}}" for name in values), values)


class StudentError(ValueError):
    """What a person asked for cannot be; ``sentence`` says why, and what would work.

    Raised as ``StudentError("{n} heads do not divide {d_model}.", n=3, d_model=64)``. Its type is
    how the app tells its own answers from other errors, whose text no student could use.
    """

    def __init__(self, template: str, /, **values: Any) -> None:
        """Take a template and its values, or a ``Sentence`` that is complete."""
        is_complete = isinstance(template, Sentence) and not values
        self.sentence: str = template if is_complete else N_(template, **values)
        super().__init__(self.sentence)


def percent(share: float) -> str:
    """Return a share in per cent with one decimal; 100% only where nothing at all is missing."""
    if share < 1 and round(share * 100, 1) == 100:
        return "99.9%"
    return f"{share * 100:.0f}%" if share in (0, 1) else f"{share * 100:.1f}%"


def points(before: float, after: float) -> float:
    """Return the change between two shares as percentage points, of the shares as they are shown.

    1.22% and 1.36% read 1.2% and 1.4%: beside them, +0.1 would be a riddle.
    """
    shown_before, shown_after = (float(percent(share)[:-1]) for share in (before, after))
    return round(shown_after - shown_before, 1)


def loss_words(loss: float) -> str:
    """Return a loss with three decimals, a small one with two digits.

    As ``said`` in ``stage_curves.js``.
    """
    return f"{loss:.3f}" if loss >= 0.1 or loss == 0 else f"{loss:#.2g}"


def whole_percent(share: float) -> str:
    """Return a share in per cent without decimals."""
    return f"{share * 100:.0f}%"


def in_bytes(n_bytes: float) -> str:
    """Return bytes with a unit of 1024: ``512 B``, ``3.4 KiB``, ``1.2 GiB``."""
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _kept(value: Any) -> Any:
    """Return a value without what an error drags along: its traceback holds whole models."""
    if isinstance(value, StudentError):
        return value.sentence
    return str(value) if isinstance(value, BaseException) else value

"""A language that nobody speaks: every sentence of the app stands in ⟦brackets⟧.

Its catalogue is extracted from the sources, as a translator's would be: what is marked is in
brackets on a page, and what is not is not.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = "xx"
KEYWORDS: dict[str, tuple[int, ...] | None] = {  # name of a function -> which of its arguments
    "_": None,
    "N_": None,
    "say": None,
    "ngettext": (1, 2),
    "counted": (1, 2),
    "StudentError": None,
    "LimitReached": None,
    "DataUnavailable": None,
    "RunNotFound": None,
    "RunDamaged": None,
    "RunHeld": None,
    "CheckpointDamaged": None,
    "Busy": None,
    "WrongValue": None,
    "NotYours": None,
    "OnlyWatches": None,
    "Refused": None,
    "TooLarge": None,
    "StoreUnavailable": None,
    "BadData": None,
    "SetMissing": None,
    "SetDamaged": None,
    "SweepNotFound": None,
    "SweepDamaged": None,
    "NotAStudy": None,
    "_TooMuch": None,
    "TrainingDiverged": None,
    "Unreadable": None,
    "Unavailable": None,
    "NotItsTurn": None,
    "JobRefused": None,
    "CrossError": (2,),
}


def sources() -> list[Path]:
    """Every file whose sentences a page may draw."""
    found = [path for folder in ("pages", "tfm_core") for path in (ROOT / folder).rglob("*.py")]
    return [ROOT / "app.py", *sorted(found)]


@cache
def messages() -> tuple[str | tuple[str, str], ...]:
    """What a translator would be given; a text with a plural is both of its forms."""
    found: dict[str | tuple[str, str], None] = {}
    for path in sources():
        for _line, text, _comments, _context in extract_from_file("python", path, KEYWORDS):
            found[text if isinstance(text, str) else (text[0], text[1])] = None
    return tuple(found)


def bracketed(text: str) -> str:
    """Return a text in the language that nobody speaks."""
    return f"⟦{text}⟧"


def write(locale: Path, content: Path) -> None:
    """Write its catalogue, and its content files beside the English ones."""
    catalogue = Catalog(locale=None)
    for text in messages():
        if isinstance(text, str):
            catalogue.add(text, bracketed(text))
        else:
            catalogue.add(text, (bracketed(text[0]), bracketed(text[1])))
    folder = locale / LANGUAGE / "LC_MESSAGES"
    folder.mkdir(parents=True)
    made = io.BytesIO()
    write_mo(made, catalogue)
    (folder / "pages.mo").write_bytes(made.getvalue())
    for part in ("pages", "tfm_core"):
        english = ROOT / part / "content" / "en"
        for path in english.rglob("*.md"):
            text, name = path.read_text(encoding="utf-8"), path.relative_to(english)
            for language, written in (("en", text), (LANGUAGE, _markdown(text))):
                (content / part / language / name).parent.mkdir(parents=True, exist_ok=True)
                (content / part / language / name).write_text(written, encoding="utf-8")


def _markdown(text: str) -> str:
    """Bracket titles and paragraphs; the heads of topics are names that the pages look up."""
    parts = text.split("\n\n")
    return "\n\n".join(_paragraph(part) for part in parts)


def _paragraph(part: str) -> str:
    head, newline, rest = part.partition("\n")
    if head.startswith("# "):
        return f"# {bracketed(head[2:])}{newline}{_paragraph(rest) if rest.strip() else rest}"
    if head.startswith("## "):
        return f"{head}{newline}{_paragraph(rest) if rest.strip() else rest}"
    if not part.strip() or part.startswith(("```", "|", "    ", "$$")):
        return part
    return bracketed(part.strip("\n"))

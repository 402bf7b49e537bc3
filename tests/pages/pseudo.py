"""A language that nobody speaks: every sentence of the app stands in ⟦brackets⟧.

Its catalogue has what a translator would be given: what is marked is in brackets on a page, and
what is not is not.
"""

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap

from babel.messages.catalog import Catalog

from tests import translation
from tests.translation import ROOT

LANGUAGE = "la"
"""A code that browsers and axe know, of a language that the app does not have."""
LONG_WORD = 8
Change = Callable[[str], str]


def bracketed(text: str) -> str:
    """Return a text in the language that nobody speaks."""
    return f"⟦{text}⟧"


def stretched(text: str) -> str:
    """Return a text in brackets that is three tenths longer, by no word longer than a word is."""
    more = "·" * round(0.3 * len(text))
    return bracketed(text + " ".join(wrap(more, LONG_WORD)))


def catalogue(change: Change = bracketed) -> Catalog:
    """Return its catalogue."""
    made = Catalog(locale=LANGUAGE)
    for text in translation.messages():
        made.add(text, change(text) if isinstance(text, str) else tuple(map(change, text)))
    return made


def write(root: Path, change: Change = stretched) -> None:
    """Write the language into a folder that is laid out as the app, as a translator does."""
    folder = root / "pages" / "locale" / LANGUAGE / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "pages.mo").write_bytes(translation.compiled(catalogue(change)))
    for part in translation.CONTENT:
        english = ROOT / part / "en"
        for path in english.rglob("*.md"):
            written = root / part / LANGUAGE / path.relative_to(english)
            written.parent.mkdir(parents=True, exist_ok=True)
            of_kind = _lesson if "lessons" in part else _markdown
            written.write_text(of_kind(path.read_text(encoding="utf-8"), change), encoding="utf-8")


def _markdown(text: str, change: Change) -> str:
    """Change titles and paragraphs; the heads of topics are names that the pages look up.

    Those of an article are its headings.
    """
    if "\n::figure " in text:
        text = re.sub("^## (.+)$", lambda head: f"## {change(head[1])}", text, flags=re.MULTILINE)
    parts = text.split("\n\n")
    return "\n\n".join(_paragraph(part, change) for part in parts)


def _lesson(text: str, change: Change) -> str:
    """Change the words of a lesson line by line; its marks and the names of its tasks stay."""
    marks = re.compile(r"(## [\w-]+: |# |- \[[ x]\] |> |\s*)(.*)")
    lines = [marks.fullmatch(line) for line in text.splitlines()]
    return "\n".join(line[1] + (change(line[2]) if line[2] else "") for line in lines if line)


def _paragraph(part: str, change: Change) -> str:
    head, newline, rest = part.partition("\n")
    if head.startswith("# "):
        tail = _paragraph(rest, change) if rest.strip() else rest
        return f"# {change(head[2:])}{newline}{tail}"
    if head.startswith("::more "):
        head = f"::more {change(head.removeprefix('::more '))}"
    if head.startswith(("## ", "::")):
        return f"{head}{newline}{_paragraph(rest, change) if rest.strip() else rest}"
    if labelled := re.findall(r"^(- [a-z_]+: )(.+)$", part, flags=re.MULTILINE):
        return "".join(f"{label}{change(text)}\n" for label, text in labelled)
    if part.startswith("| "):
        return re.sub(r"(?<=\| )[^|\n]+(?= \|)", lambda cell: change(cell[0]), part)
    if not part.strip() or part.startswith(("```", "|", "    ", "$$")):
        return part
    return change(part.strip("\n"))

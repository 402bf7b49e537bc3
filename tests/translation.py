"""Catalogues: what there is to translate, and what a language lacks.

    python -m tests.translation update ko    add new messages to the catalogue of a language
    python -m tests.translation compile ko   write what the app reads; do this after each change
    python -m tests.translation check ko     list what is missing or has other placeholders
    python -m tests.translation count ko     count what is left to translate, by area
    python -m tests.translation split ko FOLDER     write what is left, a file an area
    python -m tests.translation merge ko FILE...    take translated files in

Messages are collected from the syntax tree of the sources: the tokenizer of Python 3.11, which
Babel's extractor uses, does not look into f-strings.
"""

import ast
import copy
import gettext
import io
import re
import string
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from babel import localedata
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po

from tests.static.repository import ROOT, Source, repository
from tfm_core.korean import ENDINGS
from tfm_core.lessons import words as lesson_words
from tfm_core.sentences import paragraphs

CONTENT = ("pages/content", "tfm_core/content", "tfm_core/lessons/content")
"""The folders of content files, each with a folder a language."""
MARKS: dict[str, tuple[int, ...]] = {
    "_": (0,),
    "N_": (0,),
    "say": (0,),
    "ngettext": (0, 1),
    "counted": (0, 1),
    "super": (0,),
}
"""Name of a function that marks a message -> which of its arguments; errors take their first."""
AREAS = {
    "frame, Home, Train": (
        "app.py",
        "pages/home",
        "pages/train",
        "pages/frame.py",
        "pages/app/navigation",
        "pages/i18n.py",
        "pages/app/settings",
        "pages/app/runs",
        "pages/app/accounts",
        "pages/app/address",
        "pages/server",
        "pages/app/show",
        "pages/app/state",
        "pages/app/typed",
        "pages/runs",
        "pages/publish.py",
        "tfm_core/choices/config",
        "tfm_core/choices/presets.py",
        "tfm_core/choices/variants",
        "tfm_core/doctor",
        "tfm_core/choices/mistakes",
    ),
    "lessons, tours, class": (
        "pages/teach",
        "pages/app/lessons",
        "tfm_core/lessons",
    ),
    "learn": (
        "pages/learn",
        "tfm_core/inspect/by_hand",
        "tfm_core/studies/practice",
        "tfm_core/inspect/speed",
        "tfm_core/inspect/tensors",
        "tfm_core/inspect/text",
        "tfm_core/trace/learning",
        "tfm_core/trace/backward",
        "tfm_core/trace/update",
        "tfm_core/trace/mistakes",
    ),
    "use": (
        "pages/try_it",
        "pages/compare",
        "pages/train/own_data",
        "pages/app/model",
        "pages/components",
        "tfm_core/sweeps",
        "tfm_core/studies/bugs",
        "tfm_core/inspect/conclusions",
        "tfm_core/inspect/curves",
        "tfm_core/inspect/differences",
        "tfm_core/studies/experiments",
        "tfm_core/studies/comparing",
    ),
    "look inside": (
        "pages/look_inside",
        "tfm_core/inspect",
        "tfm_core/trace",
        "tfm_core/studies",
        "tfm_core/plots",
        "tfm_core/anatomy",
        "tfm_core/facts",
    ),
    "command line": ("tfm_core/__main__.py", "tfm_core/cli"),
    "core errors": ("tfm_core", "pages"),
}
"""Who translates what, by the beginning of a path; the first that fits."""

CONTENT_AREAS = {
    "frame, Home, Train": (
        "home",
        "train",
        "runs",
        "terms",
        "glossary",
        "settings",
        "variants",
        "symptoms",
        "training",
        "moments",
        "made-with",
        "tasks",
        "presets",
    ),
    "lessons, tours, class": ("class", "tours"),
    "learn": (
        "numbers",
        "words",
        "tensors",
        "by_hand",
        "before",
        "training_step",
        "practice",
        "speed",
        "challenges",
    ),
    "use": (
        "try",
        "beam",
        "sampling",
        "compare",
        "sweeps",
        "own-data",
        "own_data",
        "bugs",
        "conclusions",
        "findings",
        "figures",
        "questions",
    ),
    "look inside": (
        "attention",
        "knockouts",
        "mistakes",
        "probe",
        "architecture",
        "build",
        "parameters",
        "positions",
        "masks",
        "walk",
        "facts",
        "text",
    ),
}
"""Who translates which content files, by the beginning of the name; "core errors" the others."""

Text = str | tuple[str, str]
"""A text, or its singular and plural."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a translation."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@cache
def messages(root: Path = ROOT) -> dict[Text, tuple[str, ...]]:
    """Return every message that a page or a command may show, and the files that have it."""
    sources = repository(root).app
    marks = MARKS | dict.fromkeys(_errors(sources), (0,)) | {"CrossError": (1,)}
    found: dict[Text, list[str]] = {}
    for source in sources:
        for call in source.calls:
            for message in _marked(call, marks):
                files = found.setdefault(message, [])
                if source.path not in files:
                    files.append(source.path)
    return {message: tuple(files) for message, files in found.items()}


def _errors(sources: Iterable[Source]) -> set[str]:
    """Return the names of all classes below ``StudentError``."""
    bases = {
        node.name: {name for base in node.bases if (name := _name(base))}
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
    }
    known = {"StudentError"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        if node.attr == "__init__" and isinstance(node.value, ast.Call):
            return _name(node.value.func)  # the sentence of an error, in its class
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _marked(call: ast.Call, marks: dict[str, tuple[int, ...]]) -> Iterator[Text]:
    places = marks.get(_name(call.func), ())
    if not places or len(call.args) <= max(places):
        return
    if _name(call.func) == "say" and (len(call.args) > 1 or call.keywords):
        return  # another function of that name
    first, *plural = (literals(call.args[place]) for place in places)
    if plural:
        yield from zip(first, plural[0], strict=False)
    else:
        yield from first


def literals(node: ast.expr) -> list[str]:
    """Return the text of a literal, or both of ``a if … else b``."""
    if isinstance(node, ast.IfExp):
        return literals(node.body) + literals(node.orelse)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value
    return [str(node.value)] if is_text and isinstance(node, ast.Constant) else []


def _place(entry: tuple[Text, tuple[str, ...]]) -> tuple[str, str]:
    message, files = entry
    return files[0], message if isinstance(message, str) else message[0]


def template() -> Catalog:
    """Return a catalogue of all messages without translations."""
    catalogue = Catalog(locale=None, project="Watch a Transformer learn", charset="utf-8")
    for message, files in sorted(messages().items(), key=_place):
        catalogue.add(message, locations=[(name, 0) for name in files])
    return catalogue


def folder(language: str, root: Path = ROOT) -> Path:
    """Return where the catalogue of a language lies."""
    return root / "pages" / "locale" / language / "LC_MESSAGES"


def read(language: str, root: Path = ROOT) -> Catalog:
    """Return the catalogue of a language; an empty one if there is none."""
    path = folder(language, root) / "pages.po"
    if not path.is_file():
        return _empty(language)
    with path.open("rb") as file:
        return read_po(file, locale=_locale(language))


def _empty(language: str) -> Catalog:
    return Catalog(
        locale=_locale(language),
        project="Watch a Transformer learn",
        header_comment="# docs/translating.md says how this file is made.",
        charset="utf-8",
        fuzzy=False,
    )


def update(language: str, root: Path = ROOT) -> None:
    """Add new messages to a catalogue and drop those that the sources no longer have."""
    catalogue = read(language, root)
    catalogue.update(template(), no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    write(language, catalogue, root)


def write(language: str, catalogue: Catalog, root: Path = ROOT) -> None:
    """Write the catalogue of a language."""
    _write(folder(language, root) / "pages.po", catalogue)


def _write(path: Path, catalogue: Catalog) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for entry in catalogue:
        entry.flags.discard("python-format")  # "100% of" is none
    with path.open("wb") as file:
        write_po(file, catalogue, include_lineno=False, width=0, ignore_obsolete=True)


def split(language: str, into: Path, root: Path = ROOT) -> list[Path]:
    """Write a catalogue an area with what is left to translate; return the files."""
    catalogue, parts = read(language, root), dict[str, Catalog]()
    for message, files in messages().items():
        entry = catalogue.get(message)
        if entry is None or is_open(entry):
            part = parts.setdefault(area_of(files[0]), _empty(language))
            part.add(message, locations=[(name, 0) for name in files])
    paths = {into / f"{file_name(area)}.po": part for area, part in parts.items()}
    for path, part in paths.items():
        _write(path, part)
    return list(paths)


def merge(language: str, paths: Iterable[Path], root: Path = ROOT) -> None:
    """Take the translations of other files into the catalogue of a language."""
    catalogue = read(language, root)
    for path in paths:
        with path.open("rb") as file:
            for entry in read_po(file, locale=_locale(language)):
                known = catalogue.get(entry.id) if entry.id else None
                if known is not None and not is_open(entry):
                    known.string = entry.string
                    known.flags.discard("fuzzy")
    write(language, catalogue, root)


def file_name(area: str) -> str:
    """Return the name of the file of an area."""
    return re.sub(r"\W+", "-", area).lower()


def is_open(entry: Message) -> bool:
    """Return whether a message still needs its translation, in one of its forms."""
    texts = entry.string if isinstance(entry.string, list | tuple) else (entry.string,)
    return entry.fuzzy or not all(texts)


def _locale(language: str) -> str | None:
    """Return the locale that says how many plurals there are; None for one nobody knows."""
    return language if localedata.exists(language) else None


def compiled(catalogue: Catalog) -> bytes:
    """Return a catalogue as ``gettext`` reads it: what is not translated appears in English."""
    catalogue, made = copy.deepcopy(catalogue), io.BytesIO()
    for entry in catalogue:
        if entry.id and is_open(entry):
            entry.string = ""
    write_mo(made, catalogue)
    return made.getvalue()


def content(compiled: bytes) -> tuple[dict[str, str], list[tuple[object, ...]]]:
    """Return the header without the version of Babel, and the messages; of an empty file none."""
    if not compiled:
        return {}, []
    header = gettext.GNUTranslations(io.BytesIO(compiled)).info()
    messages = read_mo(io.BytesIO(compiled))
    return (
        {name: value for name, value in header.items() if name != "generated-by"},
        [(entry.context, entry.id, entry.string) for entry in messages if entry.id],
    )


def compile_catalogue(language: str, root: Path = ROOT) -> None:
    """Write the file of a language that the app reads."""
    (folder(language, root) / "pages.mo").write_bytes(compiled(read(language, root)))


def shipped(root: Path = ROOT) -> list[str]:
    """Return the languages that have a catalogue."""
    return sorted(path.parts[-3] for path in (root / "pages" / "locale").glob("*/*/pages.po"))


def problems(language: str, root: Path = ROOT, sources: Path = ROOT) -> list[Problem]:
    """Return what a language lacks, and every translation that asks for other values.

    sources: where the files are whose messages are translated.
    """
    return [*_of_messages(read(language, root), sources), *_of_content(language, root)]


def _of_messages(catalogue: Catalog, sources: Path) -> Iterator[Problem]:
    for message, files in messages(sources).items():
        forms = (message,) if isinstance(message, str) else message
        entry = catalogue.get(message)
        text = "" if entry is None or entry.fuzzy else entry.string
        texts = [text] if isinstance(text, str) else list(text or [""])
        for translated in texts:
            if not translated:
                yield Problem(files[0], f"not translated: {forms[0]}")
            elif wrong := other_values(forms, translated):
                yield Problem(files[0], f"{wrong} in: {translated}")


def _of_content(language: str, root: Path) -> Iterator[Problem]:
    for part in CONTENT:
        english, here = root / part / "en", root / part / language
        for path in sorted(english.rglob("*.md")):
            other = here / path.relative_to(english)
            where = f"{part}/{language}/{path.relative_to(english).as_posix()}"
            if not other.is_file():
                yield Problem(where, "not translated")
                continue
            if "lessons" in part:
                yield from _of_lesson(path, other, where)
                continue
            originals, translations = paragraphs(path), paragraphs(other)
            if part == "pages/content" and path.parent == english:  # a page: its headings are shown
                if len(originals) != len(translations):
                    yield Problem(where, "other number of headings")
                continue
            for key, original in originals.items():
                if not (translated := translations.get(key, "")):
                    yield Problem(where, f"not translated: {key}")
                elif wrong := other_values((original,), translated):
                    yield Problem(where, f"{wrong} in: {key}")
            for key in translations.keys() - originals.keys():
                yield Problem(where, f"not in English: {key}")


def _of_lesson(path: Path, other: Path, where: str) -> Iterator[Problem]:
    """Find tasks and options that differ: a result names an option by its place."""
    original, translated = (
        lesson_words.parse(one.read_text(encoding="utf-8"), one.name).tasks for one in (path, other)
    )
    for name, task in original.items():
        options = [one.is_right for one in task.options]
        if name not in translated:
            yield Problem(where, f"not translated: {name}")
        elif options != [one.is_right for one in translated[name].options]:
            yield Problem(where, f"other options: {name}")
    for name in translated.keys() - original.keys():
        yield Problem(where, f"not in English: {name}")


def other_values(forms: Iterable[str], translated: str) -> str:
    """Return which placeholders differ from those of the English forms, or ""."""
    try:
        wanted = [_fields(form) for form in forms]
    except ValueError:  # no template: it has braces of its own
        return ""
    try:
        found = _fields(translated)
    except ValueError as error:
        return str(error)
    formats = set().union(*wanted)
    if strange := found - formats:
        return f"strange placeholder {_listed(strange)}"
    lacking = set.intersection(*wanted) - found
    return f"no placeholder {_listed(lacking)}" if lacking else ""


def _listed(fields: set[tuple[str, str]]) -> str:
    return ", ".join(f"{{{name}{':' if spec else ''}{spec}}}" for name, spec in sorted(fields))


def _fields(text: str) -> set[tuple[str, str]]:
    """Return the placeholders of a template, each with its format but without its particle."""
    parsed = string.Formatter().parse(text)
    return {(name, _without_particle(spec or "")) for _text, name, spec, _how in parsed if name}


def _without_particle(spec: str) -> str:
    head, _colon, last = spec.rpartition(":")
    return head if last in ENDINGS else spec


def count(language: str, root: Path = ROOT) -> dict[str, tuple[int, int, int, int]]:
    """Return messages and words left, and content files and words left, by area."""
    catalogue, found = read(language, root), Counter[tuple[str, int]]()
    for message, files in messages().items():
        entry = catalogue.get(message)
        texts = (message,) if isinstance(message, str) else message
        if entry is None or is_open(entry):
            area = area_of(files[0])
            found[area, 0] += 1
            found[area, 1] += n_words(" ".join(texts))
    for part in CONTENT:
        english, here = root / part / "en", root / part / language
        for path in english.rglob("*.md"):
            if not (here / path.relative_to(english)).is_file():
                area = content_area(part, path.stem)
                found[area, 2] += 1
                found[area, 3] += n_words(path.read_text(encoding="utf-8"))
    return {
        area: (found[area, 0], found[area, 1], found[area, 2], found[area, 3]) for area in AREAS
    }


def content_area(part: str, name: str) -> str:
    """Return the area of a content file of one of ``CONTENT``."""
    if "lessons" in part:
        return "lessons, tours, class"
    fitting = {
        start: area
        for area, starts in CONTENT_AREAS.items()
        for start in starts
        if re.match(rf"{start}(?![a-z])", name)
    }
    return fitting[max(fitting, key=len)] if fitting else "core errors"


def area_of(file: str) -> str:
    """Return the area of a source file."""
    return next(
        area for area, starts in AREAS.items() if any(file.startswith(start) for start in starts)
    )


def n_words(text: str) -> int:
    """Return how many words of a text a translator reads."""
    return len(re.findall(r"[^\W\d_]{2,}", re.sub(r"\{[^}]*\}|`[^`]*`", " ", text)))


def main(arguments: list[str]) -> int:
    """Run one of the commands above."""
    match arguments:
        case ["update", language]:
            update(language)
        case ["compile", language]:
            compile_catalogue(language)
        case ["split", language, into]:
            print(*split(language, Path(into)), sep="\n")
        case ["merge", language, *files]:
            merge(language, map(Path, files))
        case ["check", language]:
            found = problems(language)
            print(*found, f"{len(found)} problems", sep="\n")
            return 1 if found else 0
        case ["count", language]:
            rows = count(language)
            for area, (n, words, files, of_files) in rows.items():
                print(
                    f"{area:24}{n:6,} messages {words:7,} words {files:4} files {of_files:6,} words"
                )
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

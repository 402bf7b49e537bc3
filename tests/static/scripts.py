"""The components' scripts: modules that parse, and one text of each entry."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pages.components.files import bundled, exports
from tests.static.repository import Repository, Violation, line_of

FOLDER = "pages/components"
PAGES = {"film", "gallery", "standalone"}
"""Entries that are pages of their own, so that they export nothing."""
INSIDES = {
    "plotly": (r"\._[a-z]\w+|scatterlayer|heatmap-label|modebar", {"insides.js", "style.css"}),
    "Streamlit": (
        r"data-testid|\bst[A-Z]\w+|/static/js|document\.scripts",
        {"streamlit_words.js", "style.css"},
    ),
}
"""What may change in any release: a pattern, and the files that may use it."""


def entries(folder: Path) -> list[str]:
    """Return the scripts that a page loads as one text."""
    return sorted(
        path.name
        for path in folder.glob("*.js")
        if path.stem in PAGES or "default" in exports(path.name, folder)
    )


def scripts_parse(repository: Repository) -> Iterator[Violation]:
    """Each script is a module that parses; so is each entry with its modules, as one text."""
    folder = repository.root / FOLDER
    texts = [
        (f"{FOLDER}/{path.name}", path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.js"))
    ]
    for entry in entries(folder):
        path = f"{FOLDER}/{entry}"
        try:
            whole = bundled(entry, folder)
        except ValueError as error:
            yield Violation(path, 1, str(error))
            continue
        texts.append((path, whole))
        if "\nimport " in f"\n{whole}":
            yield Violation(path, 1, "as one text it imports something")
        modules = re.findall(r"^const (module_\w+) = \(", whole, re.M)
        if len(modules) != len(set(modules)):
            yield Violation(path, 1, "as one text it holds a module twice")
        if whole.count("export ") != ("default" in exports(entry, folder)):
            yield Violation(path, 1, "as one text it exports more than its default")
    if (node := shutil.which("node")) is None:
        return
    parse = Path(__file__).with_name("parse.mjs")
    done = subprocess.run(
        [node, "--experimental-vm-modules", "--no-warnings", parse],
        input=json.dumps(texts),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    for path, line, message in json.loads(done.stdout):
        yield Violation(path, line, message)


def components_take_entries(repository: Repository) -> Iterator[Violation]:
    """Each entry is the script of a component or of a page, and each of these is an entry."""
    taken = {}
    for source in repository.pages:
        for found in re.finditer(r'(?:bundled|component)\(\s*"(\w+)', source.text):
            taken[f"{found[1]}.js"] = source.violation(line_of(source.text, found.start()), "")
    there = set(entries(repository.root / FOLDER))
    for name in sorted(there - taken.keys()):
        yield Violation(f"{FOLDER}/{name}", 1, "no component takes this entry")
    for name in sorted(taken.keys() - there):
        yield Violation(taken[name].path, taken[name].line, f"{name} is no entry")


def scripts_never_write_html(repository: Repository) -> Iterator[Violation]:
    """Scripts make elements: text that becomes HTML may hold a script of its own."""
    for path in sorted((repository.root / FOLDER).glob("*.js")):
        text = path.read_text(encoding="utf-8")
        for found in re.finditer("innerHTML", text):
            line = line_of(text, found.start())
            yield Violation(f"{FOLDER}/{path.name}", line, "scripts never write HTML")


def insides_are_used_in_one_file(repository: Repository) -> Iterator[Violation]:
    """What reaches into the insides of another package stands in one file."""
    folder, ui = repository.root / FOLDER, repository.root / "pages/app"
    for path in sorted([*folder.glob("*.js"), *folder.glob("*.css"), *ui.glob("*.css")]):
        text, where = path.read_text("utf-8"), path.relative_to(repository.root).as_posix()
        for whose, (pattern, allowed) in INSIDES.items():
            if path.name not in allowed:
                for found in re.finditer(pattern, text):
                    rule = f"{found[0]} is inside {whose}; use {sorted(allowed)[0]}"
                    yield Violation(where, line_of(text, found.start()), rule)


CHECKS = (
    scripts_parse,
    components_take_entries,
    scripts_never_write_html,
    insides_are_used_in_one_file,
)

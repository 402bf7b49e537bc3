"""The components' scripts: modules that parse, that compute what they say, and one text of each."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pages.components.files import FOLDER, bundled, exports
from pages.components.live import STYLES

ENTRIES = sorted(
    path.name
    for path in FOLDER.glob("*.js")
    if "default" in exports(path.name) or path.stem in {"film", "gallery", "live", "standalone"}
)
UNIT_TESTS = sorted((Path(__file__).parent / "scripts").glob("*.test.js"))
ROOT = FOLDER.parents[1]
NODE = shutil.which("node")
with_node = pytest.mark.skipif(NODE is None, reason="there is no node on the PATH")


def node(*arguments: str | Path) -> None:
    assert NODE is not None
    done = subprocess.run([NODE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@with_node
def test_what_the_scripts_compute() -> None:
    node("--test", *UNIT_TESTS)


@with_node
def test_a_script_is_a_module_that_parses() -> None:
    for path in sorted(FOLDER.glob("*.js")):
        node("--check", path)


@with_node
def test_a_script_and_its_modules_are_one_text_that_parses(tmp_path: Path) -> None:
    for entry in ENTRIES:
        whole = tmp_path / "whole.mjs"
        whole.write_text(bundled(entry), encoding="utf-8")
        node("--check", whole)


def test_one_text_imports_nothing_and_holds_no_module_twice() -> None:
    for entry in ENTRIES:
        text = bundled(entry)
        assert not re.search(r"^import ", text, re.M)
        modules = re.findall(r"^const (module_\w+) = \(", text, re.M)
        assert len(modules) == len(set(modules))
        assert text.count("export ") == ("default" in exports(entry))


def test_every_component_takes_the_text_of_an_entry() -> None:
    taken = {
        name
        for path in FOLDER.glob("*.py")
        for name in re.findall(
            r'(?:bundled|component)\(\s*"(\w+)', path.read_text(encoding="utf-8")
        )
    }
    assert {f"{name}.js" for name in taken | set(STYLES)} == set(ENTRIES)


def test_scripts_never_write_html() -> None:
    for path in FOLDER.glob("*.js"):
        assert "innerHTML" not in path.read_text(encoding="utf-8"), path.name


INSIDES = {
    "of plotly": (r"\._[a-z]\w+|scatterlayer|heatmap-label|modebar", {"insides.js", "style.css"}),
    "of Streamlit": (
        r"data-testid|\bst[A-Z]\w+|/static/js|document\.scripts",
        {"streamlit_words.js", "style.css"},
    ),
}


@pytest.mark.parametrize("whose", INSIDES)
def test_what_reaches_into_the_insides_stands_in_one_file(whose: str) -> None:
    pattern, allowed = INSIDES[whose]
    for path in [*FOLDER.glob("*.js"), *FOLDER.glob("*.css"), *(ROOT / "pages/ui").glob("*.css")]:
        if path.name not in allowed:
            reached = re.findall(pattern, path.read_text(encoding="utf-8"))
            assert not reached, f"{path.name}: {reached}"


def test_a_module_that_lacks_what_is_imported_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "one.js").write_text('import { two, gone } from "./two.js";\n', encoding="utf-8")
    (tmp_path / "two.js").write_text("export const two = 2;\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"two\.js does not export gone"):
        bundled("one.js", tmp_path)


def test_modules_in_a_circle_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = b;\n', "utf-8")
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = a;\n', "utf-8")
    with pytest.raises(ValueError, match=r"circle: a\.js -> b\.js -> a\.js"):
        bundled("a.js", tmp_path)


def test_an_import_that_is_not_understood_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import * as all from "./b.js";\n', encoding="utf-8")
    with pytest.raises(ValueError, match="not understood"):
        bundled("a.js", tmp_path)

"""Each text of a content file is used somewhere, and each that is used is there."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import i18n
from pages.i18n import CONTENT_DIR, paragraph
from tfm_core import sentences
from tfm_core.sentences import Paragraph, StudentError, paragraphs

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"Paragraph": sentences.CONTENT_DIR / "en", "paragraph": CONTENT_DIR / "en" / "texts"}


def used() -> Iterator[tuple[str, str, str]]:
    """Yield the function, a pattern of the key and the place of each use in the sources."""
    for path in [
        ROOT / "app.py",
        *(ROOT / "pages").rglob("*.py"),
        *(ROOT / "tfm_core").rglob("*.py"),
    ]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args):
                continue
            key, where = call.args[0], f"{path.relative_to(ROOT)}:{call.lineno}"
            if call.func.id not in FOLDERS:
                continue
            if isinstance(key, ast.Constant):
                yield call.func.id, re.escape(str(key.value)), where
            elif isinstance(key, ast.JoinedStr) and path != ROOT / "pages" / "i18n.py":
                parts = [
                    re.escape(p.value) if isinstance(p, ast.Constant) else "[a-z0-9_-]+"
                    for p in key.values
                ]
                yield call.func.id, "".join(parts), where


@pytest.mark.parametrize("function", FOLDERS)
def test_paragraphs_and_their_uses_match(function: str) -> None:
    keys = {
        f"{path.stem}/{name}"
        for path in FOLDERS[function].glob("*.md")
        for name in paragraphs(path)
    }
    patterns = {pattern: where for name, pattern, where in used() if name == function}
    missing = {
        where
        for pattern, where in patterns.items()
        if not any(re.fullmatch(pattern, key) for key in keys)
    }
    assert not missing, "no such paragraph"
    unused = {key for key in keys if not any(re.fullmatch(p, key) for p in patterns)}
    assert not unused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for language, words in (("en", "{n} heads divide it.\n\nTwo."), ("ko", "헤드 {n}개")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "room.md").write_text(f"## a\n{words}\n\n## b\n{language}\n")
    (tmp_path / "ko" / "room.md").write_text("## a\n헤드 {n}개\n")
    return tmp_path


def test_paragraph_is_filled_and_speaks_the_language_of_the_session(folder: Path) -> None:
    made = Paragraph("room/a", folder=folder, n=3)
    assert made == "3 heads divide it.\n\nTwo."
    with i18n.speaking("ko"):
        assert i18n._(made) == "헤드 3개"
        assert i18n._(StudentError(made)) == "헤드 3개"
        assert i18n._(Paragraph("room/b", folder=folder)) == "en"  # not translated yet
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (twin, twin.key, twin.values) == (made, made.key, made.values)


def test_unknown_paragraph_is_an_error(folder: Path) -> None:
    with pytest.raises(KeyError, match="no-such"):
        Paragraph("room/no-such", folder=folder)
    with pytest.raises(FileNotFoundError):
        paragraph("no-such-room/a")

"""Texts of content files are filled, and speak the language of the session."""

import copy
import pickle
from pathlib import Path

import pytest

from pages import i18n
from pages.i18n import paragraph
from tfm_core.sentences import Paragraph, StudentError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for language, words in (("en", "{n} heads divide it.\n\nTwo."), ("ko", "헤드 {n}개")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "room.md").write_text(f"## a\n{words}\n\n## b\n{language}\n")
    (tmp_path / "ko" / "room.md").write_text("## a\n헤드 {n}개\n")
    return tmp_path


def test_a_paragraph_is_filled_in_its_language_and_an_unknown_one_is_an_error(folder: Path) -> None:
    made = Paragraph("room/a", folder=folder, n=3)
    assert made == "3 heads divide it.\n\nTwo."
    with i18n.speaking("ko"):
        assert i18n._(made) == "헤드 3개"
        assert i18n._(StudentError(made)) == "헤드 3개"
        assert i18n._(StudentError(Paragraph("room/a", folder=folder), n=3)) == "헤드 3개"
        assert i18n._(Paragraph("room/b", folder=folder)) == "en"  # not translated yet
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (twin, twin.key, twin.values) == (made, made.key, made.values)
    with pytest.raises(KeyError, match="no-such"):
        Paragraph("room/no-such", folder=folder)
    with pytest.raises(FileNotFoundError):
        paragraph("no-such-room/a")

"""Every language that is there is whole: each message, its placeholders, and the file of the app.

The checks are shown on a language that nobody speaks, with one fault at a time.
"""

import argparse
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog

from pages import i18n, publish
from pages.app.navigation.terms import TERMS
from tests import translation
from tests.pages import pseudo
from tests.translation import ROOT
from tfm_core import languages
from tfm_core.cli import WRONG_INPUT, entry, main, start, words
from tfm_core.sentences import Paragraph, paragraphs

LANGUAGE = pseudo.LANGUAGE
SHIPPED = translation.shipped()
TERMS_KO = ROOT / "docs" / "terms-ko.md"


def test_files_of_the_app_are_compared_whichever_babel_compiled_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalogue = Catalog("ko", project="Words")
    catalogue.add("a word", "낱말")
    one = translation.compiled(catalogue)
    monkeypatch.setattr("babel.messages.catalog.VERSION", "0.0.1")
    assert one != translation.compiled(catalogue)
    assert translation.content(one) == translation.content(translation.compiled(catalogue))
    catalogue["a word"].string = "말"
    assert translation.content(one) != translation.content(translation.compiled(catalogue))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the English content files, and all files of another language."""
    root = tmp_path_factory.mktemp("translated")
    for part in translation.CONTENT:
        for path in (ROOT / part / "en").rglob("*.md"):
            copy = root / part / "en" / path.relative_to(ROOT / part / "en")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    pseudo.write(root, pseudo.bracketed)
    return root


def found(catalogue: Catalog, root: Path) -> list[str]:
    translation.write(LANGUAGE, catalogue, root)
    paragraphs.cache_clear()  # files that change are none of the app's
    return list(map(str, translation.problems(LANGUAGE, root)))


def test_whole_language_has_no_problem(whole: Path) -> None:
    assert found(pseudo.catalogue(), whole) == []


def test_message_that_is_missing_or_fuzzy_is_named(whole: Path) -> None:
    first, second, *_rest = (one for one in translation.messages() if isinstance(one, str))
    catalogue = pseudo.catalogue()
    catalogue.delete(first)
    catalogue[second].flags.add("fuzzy")
    problems = found(catalogue, whole)
    assert len(problems) == 2
    assert any(one.endswith(f"not translated: {first}") for one in problems)
    assert any(one.endswith(f"not translated: {second}") for one in problems)


@pytest.mark.parametrize(
    ("english", "translated", "problem"),
    [
        ("{n} heads", "heads", "no placeholder {n}"),
        ("{n} heads", "{n} {m}", "strange placeholder {m}"),
        ("{share:.1%} right", "{share}", "strange placeholder {share}"),
        ("{n} heads", "{n", "expected '}' before end of string"),
        ("{n} heads", "{n:을} {n}", ""),
        ("{share:.1%} right", "{share:.1%:은}", ""),
        ("step %{{x}}: {name}", "%{{x}}: {name:이}", ""),
        ("f(x) = {x", "f(x) = {x", ""),
    ],
)
def test_other_placeholders_are_named(english: str, translated: str, problem: str) -> None:
    assert translation.other_values([english], translated) == problem


def test_content_file_and_section_that_lack_are_named(whole: Path, tmp_path: Path) -> None:
    texts = whole / "pages" / "content" / LANGUAGE / "texts" / "train.md"
    before = texts.read_text(encoding="utf-8")
    try:
        texts.write_text(before.replace("## ", "## no-", 1), encoding="utf-8")
        problems = found(pseudo.catalogue(), whole)
        assert {one.partition(": ")[2].partition(":")[0] for one in problems} == {
            "not translated",
            "not in English",
        }
        texts.unlink()
        assert found(pseudo.catalogue(), whole) == [
            f"pages/content/{LANGUAGE}/texts/train.md: not translated"
        ]
    finally:
        texts.write_text(before, encoding="utf-8")


def test_messages_of_f_strings_of_both_branches_and_of_every_error_are_collected() -> None:
    known = translation.messages()
    assert "All tasks solved" in known  # in an f-string
    assert "Loading PyTorch" in known
    assert ("{n} tensor", "{n} tensors") in known
    assert "This run was not trained to label sentences." in known  # a StudentError


def test_catalogue_of_a_new_language_is_made_split_and_merged(tmp_path: Path) -> None:
    translation.update(LANGUAGE, tmp_path)
    empty = translation.read(LANGUAGE, tmp_path)
    assert len(empty) == len(
        {one if isinstance(one, str) else one[0] for one in translation.messages()}
    )
    parts = translation.split(LANGUAGE, tmp_path / "parts", tmp_path)
    assert {path.stem for path in parts} <= {
        translation.file_name(name) for name in translation.AREAS
    }
    for path in parts:
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r'^msgstr ""$(?!\n")', 'msgstr "x"', text, flags=re.M), "utf-8")
    translation.merge(LANGUAGE, parts, tmp_path)
    assert any(entry.string == "x" for entry in translation.read(LANGUAGE, tmp_path) if entry.id)


def rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", text, flags=re.MULTILINE))


def test_every_term_of_the_glossary_has_a_korean_word() -> None:
    known = rows(TERMS_KO.read_text(encoding="utf-8"))
    assert {term.english for term in TERMS} <= known.keys()


@pytest.mark.skipif("ko" not in SHIPPED, reason="there is no Korean catalogue yet")
def test_korean_catalogue_uses_the_words_of_the_list() -> None:
    known = rows(TERMS_KO.read_text(encoding="utf-8"))
    catalogue = translation.read("ko")
    with i18n.speaking("ko"):
        said = {term.english: term.name for term in TERMS}
    assert said == {name: known[name] for name in said}
    others = re.compile("매개변수|원문|번역문")
    assert not [entry.id for entry in catalogue if others.search(str(entry.string))]


def test_command_line_speaks_the_language_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pseudo.write(tmp_path, pseudo.bracketed)
    monkeypatch.setattr(languages, "FOLDER", tmp_path)
    monkeypatch.setenv("TFM_LANGUAGE", pseudo.LANGUAGE)
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    words._catalogue.cache_clear()
    try:
        assert main(["train", "--preset", "nope"]) == WRONG_INPUT
        assert capsys.readouterr().err.startswith("⟦There is no preset 'nope'.")
        assert main(["presets"]) == 0
        assert "⟦" in capsys.readouterr().out
        with pytest.raises(SystemExit):
            main(["--help"])
        assert "⟦list the presets⟧" in capsys.readouterr().out
    finally:
        words._catalogue.cache_clear()


def of_parser(parser: argparse.ArgumentParser) -> Iterator[str]:
    """What a parser and those of its commands say of themselves and of their options."""
    yield from filter(None, (parser.description, parser.epilog))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (str(choice.help) for choice in action._choices_actions)
            yield from (text for one in action.choices.values() for text in of_parser(one))
        elif not isinstance(action, argparse._HelpAction):
            yield str(action.help)


@pytest.mark.skipif("ko" not in SHIPPED, reason="there is no Korean catalogue yet")
def test_every_help_text_of_the_command_line_is_there_in_korean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFM_LANGUAGE", "ko")
    words._catalogue.cache_clear()
    try:
        parsers = (entry.parser(), publish.parser(), start.parser())
        said = [text for parser in parsers for text in of_parser(parser)]
    finally:
        words._catalogue.cache_clear()
    assert len(said) > 40
    assert [text for text in said if not re.search("[가-힣]", text)] == []


def test_files_of_a_translator_come_before_those_of_the_app_which_fill_their_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = ROOT / "pages" / "locale"
    before = languages.catalogue(ours, ["ko"])
    monkeypatch.setattr(languages, "FOLDER", tmp_path)
    for code in ("ko", LANGUAGE):
        theirs = Catalog(locale=None)
        theirs.add("Runs", "달리기")
        folder = tmp_path / "pages" / "locale" / code / "LC_MESSAGES"
        folder.mkdir(parents=True)
        (folder / "pages.mo").write_bytes(translation.compiled(theirs))
    after = languages.catalogue(ours, ["ko"])
    assert after.gettext("Runs") == "달리기" != before.gettext("Runs")
    assert after.gettext("Masks") == before.gettext("Masks") != "Masks"
    assert languages.catalogue(ours, [LANGUAGE]).gettext("Masks") == "Masks"

    room = tmp_path / "tfm_core" / "content" / "ko"
    room.mkdir(parents=True)
    english = ROOT / "tfm_core" / "content" / "en"
    said = min(english.glob("*.md"))
    one, other = list(paragraphs(said))[:2]
    korean = Paragraph(f"{said.stem}/{other}").template_in("ko")
    (room / said.name).write_text(f"## {one}\n\n하나\n", encoding="utf-8")
    assert Paragraph(f"{said.stem}/{one}").template_in("ko") == "하나"
    assert Paragraph(f"{said.stem}/{other}").template_in("ko") == korean


def test_message_without_a_translation_appears_in_english(tmp_path: Path) -> None:
    translation.update(LANGUAGE, tmp_path)
    translation.compile_catalogue(LANGUAGE, tmp_path)
    folder = tmp_path / "pages" / "locale"
    catalogue = gettext.translation("pages", folder, [LANGUAGE])
    assert catalogue.gettext("Runs") == "Runs"
    assert catalogue.ngettext("{n} operation", "{n} operations", 2) == "{n} operations"

"""Sentences are looked up where they are drawn, in the language that the session speaks then."""

import copy
import errno
import gettext
import pickle

import pytest

from pages import i18n
from pages.i18n import N_, _
from tfm_core.sentences import Sentence, StudentError, counted


class Marked(gettext.NullTranslations):
    """A language in which every text it knows stands in brackets."""

    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"⟦{msgid1 if n < 2 else msgid2}⟧"  # zero takes the singular, as in French


@pytest.fixture
def marked(monkeypatch):
    monkeypatch.setattr(i18n, "_catalogue", lambda name, folder: Marked())


def test_a_sentence_and_an_error_are_english_and_remember_their_parts():
    said = N_("{n} of {all} heads", n=3, all=4)
    assert said == "3 of 4 heads"
    assert (said.template, said.values) == ("{n} of {all} heads", {"n": 3, "all": 4})
    for twin in (copy.deepcopy(said), pickle.loads(pickle.dumps(said))):
        assert twin == said
        assert twin.template == said.template
    assert copy.deepcopy(said) is said  # a figure copies the text of each of its cells
    assert N_("the set {1, 2}") == "the set {1, 2}"
    error = StudentError("{n} is odd.", n=3)
    assert str(error) == "3 is odd."
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == "3 is odd."
    sentence = N_("{n} is odd.", n=3)
    assert StudentError(sentence).sentence is sentence
    assert str(StudentError("{braces} of a person")) == "{braces} of a person"


@pytest.mark.usefixtures("marked")
def test_sentences_counts_and_errors_are_translated():
    assert _("Plain") == "⟦Plain⟧"
    assert _(N_("{n} heads", n=3)) == "⟦3 heads⟧"
    assert _("{share:.1%} right", share=0.989) == "⟦98.9% right⟧"
    assert _("{share:.0%:은} {n}", share=0.5, n=3) == "⟦50%는 3⟧"
    assert _(N_("{kind} has {n}", kind=N_("Rotary"), n=2)) == "⟦⟦Rotary⟧ has 2⟧"
    assert _("") == ""
    spoken = [counted("{n} head of {who}", "{n} heads of {who}", n, who="A") for n in (0, 1, 2)]
    assert spoken == ["0 heads of A", "1 head of A", "2 heads of A"]
    assert [*map(_, spoken)] == ["⟦0 head of A⟧", "⟦1 head of A⟧", "⟦2 heads of A⟧"]
    for twin in (copy.deepcopy(spoken[1]), pickle.loads(pickle.dumps(spoken[1]))):
        assert (twin, twin.forms, twin.n) == (spoken[1], spoken[1].forms, 1)
    assert _(StudentError("{n} is odd.", n=3)) == "⟦3 is odd.⟧"
    assert _(RuntimeError("no such thing")) == "no such thing"
    said = _(OSError(errno.EROFS, "Read-only file system", "/srv/runs/.meta.json.0b00c4f5"))
    assert said.startswith("⟦The disk of the runs is read-only")
    assert "/srv" not in said


def test_language_outside_of_a_session_is_the_servers(monkeypatch):
    monkeypatch.setattr(i18n, "DEFAULT", "ko")
    assert i18n.language() == "ko"
    assert isinstance(N_("x"), Sentence)


class Browser:
    """What Streamlit says of a browser, and what its session keeps."""

    def __init__(self, locale: str | None, cookie: str = "", link: str | None = None) -> None:
        self.context = self
        self.locale, self.cookies = locale, {i18n.COOKIE: cookie} if cookie else {}
        self.query_params = {} if link is None else {i18n.QUERY: link}
        self.session_state: dict[str, object] = {}

    @property
    def spoken(self) -> object:
        i18n.follow_link()
        return self.session_state["language"]


@pytest.fixture
def visit(monkeypatch):
    """Open a session of an app that speaks English, Korean and Swiss German."""
    monkeypatch.setattr(i18n, "languages", lambda: ["en", "de-CH", "ko"])
    monkeypatch.setattr(i18n, "DEFAULT", "en")
    monkeypatch.delenv("TFM_LANGUAGE", raising=False)

    def visit(*facts: str | None, **more: str) -> Browser:
        browser = Browser(*facts, **more)
        monkeypatch.setattr(i18n, "st", browser)
        return browser

    return visit


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("ko", "ko"),
        ("ko-KR", "ko"),
        ("KO_kr", "ko"),
        ("de-CH", "de-CH"),
        ("de", "en"),
        ("en-GB", "en"),
        ("kok", "en"),
        ("", "en"),
        (None, "en"),
    ],
)
def test_first_visit_takes_the_language_of_the_browser(visit, locale, expected):
    assert visit(locale).spoken == expected


def test_link_goes_before_cookie_before_browser_and_an_unknown_one_is_named(visit):
    assert visit("en-GB", cookie="ko").spoken == "ko"
    assert visit("ko", cookie="en").spoken == "en"
    assert visit("ko", cookie="../../etc").spoken == "ko"
    assert visit("en", cookie="en", link="ko").spoken == "ko"
    browser = visit("ko", link="../etc")
    assert browser.spoken == "ko"
    assert i18n.unknown_in_link() == "../etc"
    browser.query_params = {}
    assert browser.spoken == "ko"
    assert i18n.unknown_in_link() is None


def test_server_that_has_a_language_offers_it_first(visit, monkeypatch):
    monkeypatch.setattr(i18n, "DEFAULT", "ko")
    assert visit("en-GB").spoken == "ko"
    monkeypatch.setattr(i18n, "DEFAULT", "en")
    monkeypatch.setenv("TFM_LANGUAGE", "en")
    assert visit("ko").spoken == "en"


@pytest.mark.parametrize(
    ("locale", "spoken", "expected"),
    [("en", "en", None), ("en", "ko", "ko"), ("ko", "en", "en"), ("ko", "ko", "ko")],
)
def test_links_say_the_language_unless_everything_is_in_english(
    visit, monkeypatch, locale, spoken, expected
):
    visit(locale)
    monkeypatch.setattr(i18n, "language", lambda: spoken)
    assert i18n.in_link() == expected

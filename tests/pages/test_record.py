"""What every page shows over runs of six kinds, in both languages, is what it showed before.

``TFM_WRITE_RECORD=1 pytest -n 0 tests/pages/test_record.py`` writes the record. What is changed on
purpose before it is written anew is listed in ``CHANGED`` of ``shown.py``, with the reason.
"""

import json
import re
import shutil
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode

import pytest

from pages.app import article
from pages.app.navigation.page_table import FINDING, FINDINGS, PAGES, current_address
from tests.pages.changing import changed_once
from tests.pages.opening import opened_at
from tests.pages.shown import assert_as_recorded, shown_at_last
from tests.pages.test_views import SHOWN
from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tfm_core.export.opening import open_run
from tfm_core.runs.store import RunStore

pytestmark = pytest.mark.usefixtures("digits_are_read")

RUNS = ("korean", "digits", "grammar", "captions", "additive")
OPENED = "opened-by-the-record"  # the id of a run: a GPT-2 of another program
MAX_CONTROLS = 24
ANSWERED = "answered"  # marks an address whose questions are all answered
ASKING = (
    ("before", ""),
    ("by-hand", ""),
    ("challenges", "experiment=no-positions"),
    ("challenges", "bug=2"),
    ("model", ""),
    ("numbers", "run=recorded-korean"),
    ("practice", ""),
    ("training-step", "stage=loss"),
    ("try", "run=recorded-captions"),
    ("try", "run=recorded-grammar&view=read"),
    ("try", "run=recorded-masked-words&view=blanks"),
    ("use", ""),
    ("walk", "run=recorded-korean"),
)
"""The pages that ask before they show, with the query of each."""


def addresses() -> Iterator[tuple[str, str]]:
    """Yield the name of each page with the queries by which it is opened."""
    for name, page in PAGES.items():
        runs = [{"run": f"recorded-{run}"} for run in RUNS] if page.shows_run else [{}]
        if name == "findings":
            runs += [{FINDING: one} for one in FINDINGS]
            runs += [{FINDING: one, "run": "recorded-grammar"} for one in ("sinks", "specialise")]
        views = [{**besides, **asked} for of_page, asked, besides in SHOWN if of_page == name]
        for query in [*runs, *({**one, "lang": "ko"} for one in runs), *views]:
            yield name, urlencode(query)
        if page.shows_run:
            yield name, f"run={OPENED}"
        for of_page, asking in ASKING:
            if of_page == name:
                yield name, f"{asking}&{ANSWERED}".lstrip("&")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opened")
    return open_run(folder_with_tokenizer("gpt2", folder / "gpt2"), RunStore(folder / "runs"))


@pytest.mark.core(200)
@pytest.mark.parametrize(("name", "query"), list(addresses()))
def test_a_page_shows_what_it_showed(request, monkeypatch, recorded, name, query):
    asked = dict(parse_qsl(query, keep_blank_values=True))
    if asked.pop(ANSWERED, None) is not None:
        monkeypatch.setattr(article, "_is_guessed", lambda _name: True)
    if asked.get("run") == OPENED:
        run = request.getfixturevalue("opened")
        shutil.copytree(run.folder, recorded.root / OPENED)
    app = opened_at(PAGES[name].file, **asked)
    assert_as_recorded(shown_at_last(app, name), name, query)


@pytest.mark.parametrize("name", [*PAGES, *FINDINGS])
def test_each_control_changes_what_it_changed(recorded, monkeypatch, name):
    monkeypatch.setattr(article, "_is_guessed", lambda _name: True)
    page, query = current_address(name, {})
    app = opened_at(PAGES[page].file, **query)
    before, changes = shown_at_last(app, name), []
    for _key in changed_once(app, most=MAX_CONTROLS):
        assert not app.exception
        now = shown_at_last(app, name)
        stood = set(map(_without_rounding, before))
        changes.append([part for part in now if _without_rounding(part) not in stood])
        before = now
    assert_as_recorded(changes, page, " ".join(["each control", *query.values()]))


def _without_rounding(part: object) -> str:
    """Return what stands there, but for what a processor rounds differently from another."""
    return re.sub(r"\d(\.\d+)?e-0[6-9]", "tiny", json.dumps(part))

"""Bring a run: a zip that was taken along is one's own run then, or a sentence says why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import take_away
from tests.pages.made_runs import made_run
from tfm_core.runs.owners import hashed
from tfm_core.runs.store import RunStore

Open = Callable[..., AppTest]
PAGE = "runs/page.py"
TOKEN = "a" * 43


def dropped(app: AppTest, content: bytes) -> AppTest:
    uploader = app.file_uploader(key="bring-file-0")
    return uploader.set_value(("a run.zip", content, "application/zip")).run()


def zip_of(run) -> bytes:
    heard: list[float] = []
    offer = next(offer for offer in take_away.OFFERS if offer.key == "zip")
    content = offer.make(run, lambda share, words: heard.append(share), frozenset())
    assert heard[-1] == 1.0
    return content


def test_a_zip_becomes_a_run_of_the_visitor_and_is_marked(store: RunStore, open_page: Open) -> None:
    run = made_run(store, name="Far away")
    app = dropped(open_page(PAGE, token=TOKEN), zip_of(run))
    assert not app.exception
    (brought,) = [one for one in store.list() if one.id != run.id]
    assert brought.meta.owner == hashed(TOKEN)
    assert brought.curves().steps["loss"].tolist() == run.curves().steps["loss"].tolist()
    said = "\n".join(element.value for element in [*app.main.markdown, *app.main.caption])
    assert "Brought from elsewhere" in said
    assert "Trained elsewhere on CPU" in said
    assert "torch" in said


def test_what_is_no_run_is_a_sentence_and_leaves_nothing(store: RunStore, open_page: Open) -> None:
    app = dropped(open_page(PAGE), b"PK nonsense")
    assert not app.exception
    said = "\n".join(element.value for element in app.main.caption)
    assert "a run.zip was not brought" in said
    assert "This is no zip that can be read" in said
    assert store.list() == []


def test_a_server_that_only_shows_takes_none(
    store: RunStore, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = zip_of(made_run(store))
    monkeypatch.setenv("TFM_MAX_QUEUED", "0")
    app = dropped(open_page(PAGE), content)
    said = "\n".join(element.value for element in app.main.caption)
    assert "only shows what was trained" in said
    assert len(store.list()) == 1


@pytest.mark.parametrize("offer", take_away.OFFERS, ids=lambda offer: offer.key)
def test_every_offer_makes_a_file_with_a_name_and_a_size(offer) -> None:
    run = RunStore().get("recorded-korean")
    if offer.key not in ("zip", "tensorboard"):
        return
    content = offer.make(run, lambda share, words: None, frozenset())
    assert content.startswith(b"PK")
    assert offer.name(run).endswith(".zip")
    about = offer.about(run)
    assert about is None or 0.4 < about / len(content) < 2.5

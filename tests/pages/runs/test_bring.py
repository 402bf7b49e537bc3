"""Import a run: an exported zip becomes an ordinary run, or a sentence says why not."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from streamlit.testing.v1 import AppTest

from pages.app.accounts import visitors
from pages.app.runs import take_away
from tests.data.user_data.test_texts import PAIRS
from tests.export.exported import members
from tests.limits import limited
from tests.pages.look_inside.attention.test_looks import encoder
from tests.pages.looking import said
from tests.pages.made_runs import made_run
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.export.bundle import bundle
from tfm_core.runs import own_sets
from tfm_core.runs.auth import Visitor, hashed
from tfm_core.runs.store import RunStore
from tfm_core.settings import Settings

PAGE = "runs/page.py"
TOKEN = "a" * 43


def dropped(app: AppTest, content: bytes, name: str = "a run.zip") -> AppTest:
    uploader = app.file_uploader(key="bring-file-0")
    return uploader.set_value((name, content, "application/zip")).run()


def zip_of(run) -> bytes:
    heard: list[float] = []
    offer = next(offer for offer in take_away.OFFERS if offer.key == "zip")
    content = offer.make(run, lambda share, words: heard.append(share), False)
    assert heard[-1] == 1.0
    return content


def test_a_zip_becomes_a_run_of_the_visitor_and_is_marked(store, open_page):
    run = made_run(store, name="Far away")
    app = dropped(open_page(PAGE, token=TOKEN), zip_of(run))
    (brought,) = [one for one in store.list() if one.id != run.id]
    assert brought.meta.owner == hashed(TOKEN)
    assert brought.curves().steps["loss"].tolist() == run.curves().steps["loss"].tolist()
    assert "Imported" in said(app)
    assert "Trained elsewhere on CPU" in said(app)
    assert "torch" in said(app)


def test_a_look_file_becomes_a_run_of_the_visitor(store, open_page, tmp_path):
    seen = encoder()
    content = seen.save(tmp_path / "mine.safetensors").read_bytes()
    app = dropped(open_page(PAGE, token=TOKEN), content, "My encoder.safetensors")
    (run,) = store.list()
    assert (run.meta.name, run.meta.owner) == ("My encoder", hashed(TOKEN))
    (first, *_rest) = seen.maps.values()
    assert np.allclose(
        run.snapshot(0).attention["encoder.layers.0.self_attention"], first.weights, atol=1e-3
    )
    assert "Imported" in "\n".join(element.value for element in app.main.markdown)


def test_what_is_no_run_or_look_is_a_sentence_and_leaves_nothing(store, open_page, tmp_path):
    path = tmp_path / "one.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    app = dropped(open_page(PAGE), path.read_bytes(), "other.safetensors")
    assert "other.safetensors is not a look" in said(app)
    assert store.list() == []
    app = dropped(open_page(PAGE), b"PK nonsense")
    assert "a run.zip was not imported" in said(app)
    assert "This is not a readable zip" in said(app)
    assert store.list() == []


def test_a_server_that_only_shows_takes_none(store, open_page, monkeypatch):
    content = zip_of(made_run(store))
    monkeypatch.setenv("TFM_MAX_RUNNING", "0")
    app = dropped(open_page(PAGE), content)
    assert "only shows trained runs" in said(app)
    assert len(store.list()) == 1


def run_on_a_set(store: RunStore, owner: str):
    """A run on pairs that a visitor of this name keeps."""
    prepared = prepare(inspect_text("pairs", PAIRS), name="My pairs")
    own = own_sets.keep(prepared, store=store, visitor=Visitor(owner), settings=Settings())
    return made_run(store, experiment=kinds.proposal(own).experiment, owner=owner)


@pytest.fixture
def elsewhere(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("elsewhere"), recorded=None)


def zip_offer() -> take_away.Offer:
    return next(offer for offer in take_away.OFFERS if offer.key == "zip")


def test_a_set_is_taken_along_by_those_alone_who_keep_it(store, monkeypatch):
    run, tick = run_on_a_set(store, hashed(TOKEN)), zip_offer().tick
    keeper = Visitor(hashed(TOKEN), is_public=True)
    monkeypatch.setattr(visitors, "visitor", lambda: keeper)
    assert tick.offered(run)
    assert tick.more(run) == own_sets.listed(store, keeper)[0].n_bytes
    with_it = zip_offer().make(run, lambda share, words: None, True)
    assert "set/train.jsonl" in members(with_it)
    stranger = Visitor(hashed("b" * 43), is_public=True)
    monkeypatch.setattr(visitors, "visitor", lambda: stranger)
    assert not tick.offered(run)
    store.label(run.id, note="For me alone.", tags=["secret"])
    forced = members(zip_offer().make(run, lambda share, words: None, True))
    assert "set/train.jsonl" not in forced
    facts = forced["run.json"]
    assert [word for word in (b"secret", b"For me alone", b"My pairs") if word in facts] == []
    assert not tick.offered(made_run(store))


def test_a_set_that_comes_along_is_the_visitors_and_one_that_does_not_is_named(
    store, open_page, elsewhere
):
    with sets.below(elsewhere.root):
        run = run_on_a_set(elsewhere, hashed("b" * 43))
    app = dropped(open_page(PAGE, token=TOKEN), bundle(run))
    (brought,) = store.list()
    words = said(app).replace("\\", "")
    assert f"data set, “My pairs” ({sets.set_of(run.experiment.task)})" in words
    assert "Include your data set" in said(app)
    store.discard(brought)
    app = dropped(open_page(PAGE, token=TOKEN), bundle(run, with_set=True))
    (own,) = own_sets.listed(store, Visitor(hashed(TOKEN), is_public=True))
    assert own.name == "My pairs"
    assert "To train further" not in said(app)


def test_a_set_that_the_server_has_no_room_for_leaves_no_run(
    store, open_page, elsewhere, monkeypatch
):
    with sets.below(elsewhere.root):
        content = bundle(run_on_a_set(elsewhere, hashed(TOKEN)), with_set=True)
    limited(monkeypatch, max_own_data=100)
    app = dropped(open_page(PAGE, token=TOKEN), content)
    assert "of 100 B" in said(app).replace("\\", "")
    assert store.list() == []

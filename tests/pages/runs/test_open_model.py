"""Open a pretrained model: an uploaded folder, or one of the host's, becomes a run."""

from __future__ import annotations

import pytest

from pages.ui.accounts import visitors
from tests.pages.looking import said
from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tfm_core.runs.auth import hashed

PAGE = "runs/page.py"
TOKEN = "a" * 43


@pytest.fixture
def folder(tmp_path):
    return folder_with_tokenizer("bert", tmp_path / "models" / "little")


def dropped(app, folder, *, without=()):
    files = [
        (f"{folder.name}/{path.name}", path.read_bytes(), "application/octet-stream")
        for path in sorted(folder.iterdir())
        if path.name not in ("answer.safetensors", *without)
    ]
    return app.file_uploader(key="open-model-file-0").set_value(files).run()


def test_an_uploaded_folder_becomes_the_visitors_run(store, open_page, folder):
    app = dropped(open_page(PAGE, token=TOKEN), folder)
    assert not app.exception
    (run,) = store.list()
    assert (run.meta.name, run.meta.owner, run.status.state) == ("little", hashed(TOKEN), "opened")
    assert app.session_state["current_run"] == run.id


def test_what_is_missing_is_a_sentence_and_leaves_nothing(store, open_page, folder):
    app = dropped(open_page(PAGE), folder, without=("tokenizer.json",))
    assert not app.exception
    assert "little was not imported" in said(app)
    assert "tokenizer" in said(app)
    assert store.list() == []


def test_the_hosts_folders_are_listed_and_no_link_leads_out(
    store, open_page, folder, monkeypatch, tmp_path
):
    outside = folder_with_tokenizer("gpt2", tmp_path / "secret")
    (folder.parent / "away").symlink_to(outside)
    half = folder.parent / "half"
    half.mkdir()
    (half / "config.json").symlink_to(outside / "config.json")
    monkeypatch.setenv("TFM_MODELS_DIR", str(folder.parent))
    monkeypatch.setenv("TFM_PUBLIC", "1")
    app = open_page(PAGE, token=TOKEN)
    app.session_state["open-model-listed"] = True
    app.run()
    assert app.selectbox(key="open-model-folder").options == ["little"]
    assert "BERT" in said(app)
    app.button(key="open-model-open").click().run()
    assert not app.exception
    assert [run.meta.name for run in store.list()] == ["little"]


def test_a_public_server_opens_none_unless_its_host_has_a_folder(open_page, monkeypatch):
    monkeypatch.setenv("TFM_PUBLIC", "1")
    app = open_page(PAGE, token=TOKEN)
    assert "Open a pretrained model" not in [one.label for one in app.expander]
    assert not [one for one in app.get("file_uploader") if one.key == "open-model-file-0"]


def test_who_only_watches_opens_none(open_page, monkeypatch):
    monkeypatch.setattr(visitors, "why_not", lambda: "Only the teacher starts runs.")
    app = open_page(PAGE)
    assert not [one for one in app.get("file_uploader") if one.key == "open-model-file-0"]

"""Open a pretrained model: an uploaded folder becomes a run."""

import pytest

from pages.app.accounts import visitors
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
    assert "BERT" in app.toast[0].value
    (run,) = store.list()
    assert (run.meta.name, run.meta.owner, run.status.state) == ("little", hashed(TOKEN), "opened")
    assert app.session_state["current_run"] == run.id


def test_a_checkpoint_inside_a_dropped_folder_opens_and_nothing_beside_it(store, open_page, folder):
    files = [
        (f"mine/checkpoint-7/{path.name}", path.read_bytes(), "application/octet-stream")
        for path in sorted(folder.iterdir())
    ]
    files.append(("../outside.json", b"{}", "application/json"))
    app = open_page(PAGE).file_uploader(key="open-model-file-0").set_value(files).run()
    (run,) = store.list()
    assert run.meta.name == "mine, checkpoint-7"
    assert "checkpoint-7" in app.toast[0].value


def test_what_is_missing_is_a_sentence_and_leaves_nothing(store, open_page, folder):
    app = dropped(open_page(PAGE), folder, without=("tokenizer.json",))
    assert "little was not imported" in said(app)
    assert "tokenizer" in said(app)
    assert store.list() == []


def test_neither_a_public_server_nor_who_only_watches_opens_one(open_page, monkeypatch):
    monkeypatch.setenv("TFM_PUBLIC", "1")
    app = open_page(PAGE, token=TOKEN)
    assert "Open a pretrained model" not in [one.label for one in app.expander]
    assert not [one for one in app.get("file_uploader") if one.key == "open-model-file-0"]
    monkeypatch.delenv("TFM_PUBLIC")
    monkeypatch.setattr(visitors, "why_not", lambda: "Only the teacher starts runs.")
    app = open_page(PAGE)
    assert not [one for one in app.get("file_uploader") if one.key == "open-model-file-0"]

"""The widget of a notebook is the run's replay page, and a picture where nothing runs."""

import importlib
import json

import pytest

from pages import widget
from tests.looking.loops import trained
from tests.pages.look_inside.attention.test_looks import encoder
from tfm_core.runs import notebook
from tfm_core.sentences import StudentError


@pytest.fixture
def opened(store):
    return notebook.open_run(trained(store).id, store=store)


def test_a_page_needs_nothing_else_and_each_widget_holds_its_run(opened):
    title, page, picture = widget.contents(opened)
    assert title == "Writer"
    assert "<!doctype html>" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert picture.count("<svg") == 3
    pytest.importorskip("anywidget")
    one, other = widget.show(opened), widget.show(opened, height=300)
    assert one.model_id != other.model_id
    assert (one.page, other.height) == (other.page, 300)
    bundle = one._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "<svg" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in json.dumps(list(data))


def test_a_look_has_its_page_and_its_heads_as_a_picture():
    seen = encoder()
    title, page, picture = widget.contents(seen)
    assert title == "TransformerEncoder"
    assert "2,168" in page  # its parameters
    assert "Learning rate" not in page
    assert picture.count("<svg") >= 1


def test_without_anywidget_a_sentence_says_what_to_install(opened, monkeypatch):
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(StudentError, match="pip install anywidget"):
        widget.show(opened)

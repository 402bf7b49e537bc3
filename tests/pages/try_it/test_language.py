"""Language models and adders: read, continued, looked through, and trained on a text."""

import re

import pytest

from pages.app.runs import run_actions
from pages.app.settings.drafts import Draft
from tests.inspect.attention.test_own_example import trained
from tests.limits import limited
from tests.pages.looking import header_of, part_of, said
from tests.training.test_language import language
from tests.training.test_loop import experiment
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.text.corpus import read_text
from tfm_core.data.user_data import sets

PAGE = "try_it/page.py"


@pytest.fixture
def model(store):
    return trained(store.root, language("grammar", task={"unit": "words"}))[0]


@pytest.fixture
def adder(store):
    return trained(store.root, experiment("decoder-only", "addition"))[0]


def shown_text(app):
    """Return the HTML of the text that is read, or written first."""
    text = next(one.proto.body for one in app.get("html") if "tfm-gpt text" in one.proto.body)
    return text.partition('<div class="tfm-gpt scale">')[0]


def test_without_a_model_every_view_offers_to_train_one(open_page):
    for view, preset in (("read", "gpt-grammar"), ("add", "addition-3")):
        assert open_page(PAGE, view=view).button(key=f"head-train-{preset}")


def test_a_text_is_read_with_its_surprises_and_written_on(open_page, model):
    app = open_page(PAGE, view="read", step="63")
    assert "step is “63” in the link" in app.warning[0].value
    assert not app.error
    assert [metric.label for metric in app.metric][:3] == ["Loss", "Bits per word", "Perplexity"]
    app.text_area(key="read-text").set_value("the dog eats an apple").run()
    tokens = re.findall(r'<span class="(t[^"]*)"[^>]*>([^<]*)<', shown_text(app))
    assert [token for _look, token in tokens] == [
        "the",
        "dog",
        "eats",
        "an",
        "apple",
        "&lt;eos&gt;",
    ]
    assert sum("picked" in look.split() for look, _token in tokens) == 1
    assert "guess no." in said(app)
    app.slider(key="read-token").set_value(2).run()
    assert "**dog** (token 2)" in said(app)
    app = open_page(PAGE, view="continue")
    app.number_input(key="write-sample-length").set_value(5).run()
    first, other = (len(written(app, seed)) for seed in range(2))
    assert 0 < first <= 5
    assert 0 < other <= 5
    assert "**Next token** of the first sample" in said(app)
    app.number_input(key="write-samples").set_value(1).run()
    assert not [html for html in app.get("html") if "tfm-gpt text" in html.proto.body]


def written(app, seed):
    """Return the tokens of a sample: on the desk, or beside it."""
    if not seed:
        return [step["token"] for step in header_of(part_of(app, "writing_desk").bytes)["steps"]]
    return re.findall(r'class="t own" title', shown_text(app))


def test_a_model_of_byte_pairs_reads_writes_and_is_looked_through(open_page, store):
    trained(store.root, language(task={"unit": "bpe"}))
    app = open_page(PAGE, view="read")
    assert [metric.label for metric in app.metric][:2] == ["Loss", "Bits per piece"]
    app.text_area(key="read-text").set_value("the  cat\n sat 쥐").run()
    assert not app.error
    assert "쥐" in said(app)
    app = open_page(PAGE, view="continue")
    app.number_input(key="write-sample-length").set_value(3).run()
    assert len(written(app, 0)) == 3
    app.button_group(key="write-language-method").set_value("beam").run()
    app = open_page(PAGE, view="lens")
    assert "what the model would predict after each layer" in said(app)


def test_sums_and_texts_that_cannot_be_are_refused_with_a_sentence(open_page, adder):
    app = open_page(PAGE, view="add")
    assert "105" in said(app)  # 88+17
    app.text_input(key="add-text").set_value("twelve").run()
    assert app.error
    app = open_page(PAGE, view="train")
    assert f"{len(read_text()):,} tokens" in said(app)
    app.text_area(key="train-own-text").set_value("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").run()
    assert "repeats one token" in app.error[0].value
    assert app.button(key="train-own").disabled


def test_a_configuration_of_before_that_holds_its_text_opens_and_can_be_made_a_set(
    open_page, store
):
    text = "to be or not to be, that is the question. " * 9
    values = PRESETS["gpt-text"].experiment.model_dump()
    values["task"] |= {"text": text}
    app = open_page("train/page.py")
    app.session_state["draft"] = Draft(values)
    app.run()
    assert "Links leave out this text" in said(app)
    assert "leaves out your pasted text" in part_of(app, "copy_link").json
    app.button(key="corpus-text-keep").click().run()
    task = Experiment.parse(app.session_state["draft"].values).task
    assert (task.data, task.text) == (sets.listed(store.root / "own-data")[0].id, "")
    app.session_state["draft"] = Draft(values)
    app.run()
    app.button(key="corpus-text-forget").click().run()
    assert Experiment.parse(app.session_state["draft"].values).task.text == ""


def test_a_text_of_ones_own_is_trained_on_as_a_set(open_page, store, monkeypatch):
    begun = []
    monkeypatch.setattr(
        run_actions, "start", lambda experiment, *, name: begun.append((experiment, name))
    )
    app = open_page(PAGE, view="train")
    app.text_area(key="train-own-text").set_value("to be or not to be. " * 30).run()
    app.button(key="train-own").click().run()
    ((experiment, name),) = begun
    (own,) = sets.listed(store.root / "own-data")
    assert (experiment.task.data, experiment.task.text) == (own.id, "")
    assert name.startswith("My text")
    limited(monkeypatch, max_own_data=1)
    monkeypatch.setenv("TFM_PUBLIC", "1")
    app = open_page(PAGE, view="train")
    app.text_area(key="train-own-text").set_value("to be or not to be! " * 30).run()
    app.button(key="train-own").click().run()
    assert "Remove some first" in app.error[0].value
    assert len(begun) == 1

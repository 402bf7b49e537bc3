"""With nothing trained: pages that show what a model learned open on a recorded run, and say so."""

import pytest

from tests.pages.looking import n_drawn, said
from tfm_core import byte_cache
from tfm_core.presets import PRESETS
from tfm_core.recorded.build import RECORDINGS

COLD = [  # the page's link, what of the recorded run is in sight, its own button
    ("before", {}, "RNN, additive attention (2015)", "before-train"),
    ("encoders", {}, "This trained model comes with the app", "encoders-sentiment-own"),
    (
        "encoders",
        {"view": "blanks"},
        "This trained model comes with the app",
        "encoders-masked-words-own",
    ),
    ("gpt", {}, "A GPT of sentences, recorded", "gpt-language-own"),
    ("captions", {}, "Pictures to words, recorded", "captions-own"),
    ("knockouts", {}, "English to Korean, recorded", "knockouts-own"),
    ("positions", {"view": "learned"}, "The notebook’s ViT, recorded", "positions-learned-own"),
    ("positions", {"view": "t5-bias"}, "Hidden spans (T5), recorded", "positions-own"),
    ("gpt", {"part": "add"}, "A GPT that adds, recorded", "gpt-addition-own"),
    ("before", {"view": "length"}, "on a server CPU", "before-measure"),
    ("positions", {"view": "race"}, "All 6 runs have finished", "positions-train"),
    ("practice", {"step": "train"}, "Overfitting begins at step", "practice-plain"),
    ("practice", {"step": "early"}, "Stopped at step", "practice-early"),
    ("practice", {"step": "augment"}, "percentage points", "practice-augmented"),
]


@pytest.mark.core(3)
@pytest.mark.parametrize(("page", "query", "words", "own"), COLD)
def test_a_cold_page_shows_what_was_recorded_and_how_to_train_ones_own(
    recorded, open_page, page, query, words, own
):
    app = open_page(f"{page}/page.py", **query)
    assert not app.error
    shown = " ".join([said(app), *(str(box.value) for box in app.selectbox)])
    names = {run.id: run.meta.name for run in recorded.list()}
    shown += " ".join(names.get(str(box.value), "") for box in app.selectbox)
    shown += " ".join(one.value for one in (*app.header, *app.subheader))
    assert words in shown
    assert "Recorded" in shown
    assert app.button(key=own)
    assert n_drawn(app) >= 1  # a figure of it


@pytest.mark.parametrize("step", ["errors", "save", "test"])
def test_good_practice_goes_on_with_the_recorded_runs(recorded, open_page, step):
    app = open_page("practice/page.py", step=step)
    assert not app.error
    assert "Validation chooses" in said(app)
    assert "0 of 7 done" in said(app)  # what was recorded is nobody's progress


def test_parameters_shows_recorded_weights_for_a_model_without_any(recorded, open_page):
    app = open_page("architecture/parameters.py")
    app.session_state["parameters-tab"] = "Weights"
    app.run()
    assert "of **Digits, recorded**" in said(app)
    assert app.selectbox(key="parameters-weights").options


def test_what_cls_and_patches_know_is_measured_cold_without_a_download(
    recorded, open_page, monkeypatch, tmp_path
):
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path))
    byte_cache.SHARED.clear()  # another test may have read the pictures
    app = open_page("encoders/page.py", view="patches")
    assert not app.error
    shown = said(app)
    assert "This trained model comes with the app" in shown
    assert "the CLS token" in shown
    assert "not on this computer" in shown
    assert app.button(key="encoders-vit-digits-own")


def test_ones_own_runs_stand_before_the_recorded(recorded):
    own = recorded.create(PRESETS["copy"].experiment, name="Mine")
    first, *others = recorded.list()
    assert first.id == own.id
    recorded = [run.id for run in others]
    assert set(recorded) == {run_id for run_id, one in RECORDINGS.items() if not one.is_lesson}
    assert recorded[:2] == ["recorded-digits", "recorded-korean"]

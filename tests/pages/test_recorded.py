"""With nothing trained: pages that show what a model learned open on a recorded run, and say so."""

from tests.pages.looking import said
from tfm_core import byte_cache
from tfm_core.choices.presets import PRESETS
from tfm_core.recorded.build import RECORDINGS


def test_parameters_shows_recorded_weights_for_a_model_without_any(recorded, open_page):
    app = open_page("look_inside/parameters.py")
    app.session_state["parameters-tab"] = "weights"
    app.run()
    assert app.query_params["run"] == "recorded-korean"
    assert app.selectbox(key="parameters-weights").options


def test_what_cls_and_patches_know_is_measured_cold_without_a_download(
    recorded, open_page, monkeypatch, tmp_path
):
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path))
    byte_cache.SHARED.clear()  # another test may have read the pictures
    app = open_page("try_it/page.py", view="patches")
    assert not app.error
    shown = said(app)
    assert "the CLS token" in shown
    assert "not on this computer" in shown


def test_ones_own_runs_stand_before_the_recorded(recorded):
    own = recorded.create(PRESETS["copy"].experiment, name="Mine")
    first, *others = recorded.list()
    assert first.id == own.id
    recorded = [run.id for run in others]
    assert set(recorded) == {run_id for run_id, one in RECORDINGS.items() if not one.is_lesson}
    assert recorded[:2] == ["recorded-digits", "recorded-korean"]

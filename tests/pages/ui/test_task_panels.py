"""Every kind of task has its panels, and each panel is there to be drawn."""

from __future__ import annotations

from pages.i18n import content
from pages.ui.task_panels import TASK_PANELS, example_name
from tfm_core.config import CaptionTaskConfig, Experiment
from tfm_core.presets import PRESETS
from tfm_core.variants.tasks import TASK_KINDS


def test_every_kind_of_task_has_panels() -> None:
    assert list(TASK_PANELS) == list(TASK_KINDS)


def test_every_panel_is_there() -> None:
    for panels in TASK_PANELS.values():
        assert callable(panels.sample())
        assert callable(panels.own())
        assert content(panels.own_words)


def test_an_example_is_named_by_what_its_kind_holds() -> None:
    text = {"src_text": "1+2", "tgt_text": "3"}
    assert example_name(Experiment(), text, 5) == "5: 1+2 → 3"
    assert example_name(Experiment(), text, 5, is_short=True) == "5: 1+2"
    digits = PRESETS["vit-digits"].experiment
    assert example_name(digits, {"label": 7}, 2) == "Picture 2: 7"
    captions = PRESETS["captions"].experiment
    assert isinstance(captions.task, CaptionTaskConfig)
    assert example_name(captions, {"tgt_text": "a two"}, 3, is_short=True) == "Picture 3: a two"

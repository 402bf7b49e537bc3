"""Home: a card for every preset, one press to start, and the runs of before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.home.samples import SCENE, caption_sample, text_sample
from tests.pages.made_runs import made_run
from tfm_core.data.compose import compose
from tfm_core.data.embedded import read_embedded
from tfm_core.presets import PRESETS
from tfm_core.runs.queue import RunQueue
from tfm_core.runs.store import RunStore

Open = Callable[..., AppTest]


def test_every_preset_has_a_card_that_says_what_it_learns(open_page: Open) -> None:
    app = open_page()
    words = "\n".join(element.value for element in [*app.markdown, *app.caption])
    for preset in PRESETS.values():
        assert preset.label in words
        assert preset.learns in words
        assert preset.reaches in words


@pytest.mark.parametrize("name", PRESETS)
def test_one_press_starts_a_preset_and_shows_it(
    name: str, store: RunStore, busy_queue: RunQueue, open_page: Open
) -> None:
    app = open_page()
    app.button(key=f"start-{name}").click().run()
    assert not app.exception
    (run,) = [run for run in store.list() if run.meta.preset == name]
    assert run.experiment == PRESETS[name].experiment
    assert run.status.state == "queued"
    assert busy_queue.position(run.id) == 1
    assert app.session_state["current_run"] == run.id
    assert app.query_params["run"] == run.id


def test_a_preset_beyond_the_limits_is_refused_in_a_sentence_and_leaves_nothing(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TFM_MAX_STEPS", "7")
    request.getfixturevalue("busy_queue")
    app = request.getfixturevalue("open_page")()
    app.button(key="start-copy").click().run()
    assert "at most 7 are allowed here" in app.error[0].value
    assert [run.meta.name for run in store.list()] == ["The one that trains"]


def test_one_visitor_may_have_only_so_many_runs_in_hand(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TFM_MAX_PER_SESSION", "1")
    request.getfixturevalue("busy_queue")
    app, other = (request.getfixturevalue("open_page")() for _ in range(2))
    app.button(key="start-copy").click().run()
    app.switch_page("home/page.py").run()
    app.button(key="start-sort").click().run()
    assert "1 run trains or waits for you already" in app.error[0].value
    other.button(key="start-sort").click().run()
    assert not other.error
    assert sum(run.status.state == "queued" for run in store.list()) == 2


def test_home_lists_the_newest_runs_and_leads_to_all(store: RunStore, open_page: Open) -> None:
    for number in range(5):
        made_run(store, name=f"Run {number}")
    app = open_page()
    words = "\n".join(element.value for element in app.markdown)
    assert "Run 4" in words
    assert "Run 1" not in words
    assert any("All 5 runs" in link.proto.label for link in app.get("page_link"))


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_the_example_of_a_text_task_is_true(preset) -> None:
    if preset.experiment.task.kind in {"image", "caption"}:
        with pytest.raises(ValueError, match="here SequenceTaskConfig is needed"):
            text_sample(preset.experiment)
    else:
        assert all(text_sample(preset.experiment))


def test_the_example_of_the_caption_task_is_composed_of_real_digits() -> None:
    """The picture on the card is what the task composes, and its caption is true of it."""
    images, labels = read_embedded()
    chosen = [(labels == 7).nonzero()[3, 0], (labels == 3).nonzero()[5, 0]]
    digits = torch.stack([images[index, 0] for index in chosen])[None]
    picture = compose(digits, torch.tensor([[[21, 0, 21], [14, 28, 21]]]))[0, 0].numpy()
    shown = np.asarray(Image.open(SCENE))[..., 3]
    expected = np.asarray(Image.fromarray(picture).resize((196, 196), Image.Resampling.BILINEAR))
    assert np.abs(shown.astype(int) - expected).max() <= 1
    assert caption_sample(PRESETS["captions"].experiment) == "a three below a seven"
    assert caption_sample(PRESETS["captions-korean"].experiment) == "삼은 칠 아래에 있다"
    with pytest.raises(ValueError, match="here CaptionTaskConfig is needed"):
        caption_sample(PRESETS["copy"].experiment)

"""From Home, one press starts a preset, and its curve grows.

That every preset has a row which starts its own experiment, and that every page opens with a run of
each, is a matter of the pages' tests.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP, Tab
from tfm_core.presets import PRESETS

pytestmark = pytest.mark.browser

HAS_MNIST = (Path(os.environ.get("TFM_DATA_DIR", "")) / "MNIST" / "raw").is_dir()
PRESET = "vit-digits"


def press(tab: Tab, preset: str) -> None:
    tab.choose(f"All {len(PRESETS)}")
    tab.button(f"Train: {PRESETS[preset].label}").click()


def test_a_preset_starts_with_one_press_draws_its_curve_and_stops(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab()
    press(tab, PRESET)
    run = server.hold()
    expect(tab.title).to_have_text(PRESETS[PRESET].label)
    assert tab.run_id == run.id
    assert tab.await_step(1) < PRESETS[PRESET].experiment.training.steps
    for name in ("loss", "accuracy"):
        tab.await_plotly(name, f"{LAST_STEP} > 0")
    before = tab.plotly("loss", LAST_STEP)
    tab.button("Train one step").click()
    tab.await_plotly("loss", f"{LAST_STEP} > arg", before)
    tab.button("Stop").click()
    expect(tab.state("Stopped")).to_be_visible()
    assert run.status.state == "stopped"


@pytest.mark.skipif(HAS_MNIST, reason="The full MNIST is in TFM_DATA_DIR.")
def test_a_preset_whose_data_cannot_be_downloaded_says_so_and_keeps_its_run(
    open_tab: OpenTab,
) -> None:
    tab = open_tab()
    press(tab, "vit-mnist")
    expect(tab.title).to_have_text(PRESETS["vit-mnist"].label)
    expect(tab.state("Failed")).to_be_visible()
    error = tab.main.get_by_role("alert").filter(has_text="could not be downloaded")
    expect(error).to_contain_text("choose the 5,000 MNIST digits")
    expect(tab.button("Resume")).to_be_enabled()
    tab.reload()
    expect(tab.state("Failed")).to_be_visible()

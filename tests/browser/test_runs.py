"""The Runs page: rename, delete, undo, import, compare; a damaged run stands beside sound ones."""

from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Locator, expect

from pages.server.guards import MAX_PER_SESSION
from tests.browser.conftest import OpenTab
from tests.browser.experiments import SHORT
from tests.browser.server import AppServer
from tests.browser.tab import Tab
from tfm_core.export.bundle import bundle
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

pytestmark = pytest.mark.browser
SCROLLED = "() => document.querySelector('[data-testid=stMain]').scrollTop"


def row(tab: Tab, run: Run) -> Locator:
    return tab.main.locator(f".st-key-run-{run.id}")


def menu(tab: Tab, run: Run) -> Locator:
    """Open the menu of a run."""
    row(tab, run).get_by_role("button", name="More").click()
    body = tab.page.get_by_test_id("stPopoverBody")
    expect(body).to_be_visible()
    return body


def rename(tab: Tab, run: Run, name: str) -> None:
    """Give a run another name in the dialog of its menu."""
    menu(tab, run).get_by_role("button", name="Name, tags and note").click()
    dialog = tab.page.get_by_role("dialog")
    field = dialog.get_by_role("textbox", name="Name", exact=True)
    field.fill(name)
    field.press("Tab")
    tab.settle()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)


def test_a_run_is_renamed_deleted_and_brought_back_beside_a_damaged_one(
    open_tab: OpenTab, server: AppServer
) -> None:
    run = server.store.create(SHORT, name="Before", state="stopped")
    broken = server.store.create(SHORT, name="Broken", state="stopped")
    (broken.folder / "experiment.json").write_text("{ garbage", encoding="utf-8")
    korean, digits = (server.store.get(f"recorded-{name}") for name in ("korean", "digits"))
    tab = open_tab("runs")
    rename(tab, run, "*After*")
    expect(row(tab, run)).to_contain_text("*After*")
    menu(tab, run).get_by_role("button", name="Delete").click()
    expect(row(tab, run)).to_have_count(0)
    expect(tab.main.get_by_text("Deleted *After*.")).to_be_visible()
    undo = tab.main.get_by_role("button", name="Undo *After*")
    undo.click()
    expect(row(tab, run)).to_contain_text("*After*")
    expect(undo).to_have_count(0)

    # a damaged run says so and can be deleted
    expect(row(tab, broken)).to_contain_text("This run is damaged: experiment.json is not valid.")
    menu(tab, broken).get_by_role("button", name="Delete").click()
    expect(row(tab, broken)).to_have_count(0)

    # the list is searched while one types
    words = tab.main.get_by_placeholder("name, #tag, note, group, setting")
    words.press_sequentially("korean")  # and no Enter
    expect(row(tab, digits)).to_have_count(0)
    expect(row(tab, korean)).to_be_visible()
    words.fill("")
    expect(row(tab, run)).to_be_visible()

    # a run opens at the top of its page
    expect(row(tab, korean).get_by_role("img", name="Training accuracy")).to_be_visible()
    row(tab, korean).get_by_role("button", name=korean.meta.name, exact=True).click()
    expect(tab.main.get_by_role("heading", name=korean.meta.name)).to_be_in_viewport()
    assert tab.page.evaluate(SCROLLED) == 0


def test_imported_runs_are_ticked_and_compared_and_dialogs_stay_behind(
    open_tab: OpenTab, server: AppServer, tmp_path: Path
) -> None:
    runs = [server.store.create(SHORT, name="Here", state="stopped")]
    brought = RunStore(tmp_path, recorded=None).create(SHORT, name="Far away", state="stopped")
    tab = open_tab("runs")
    tab.main.get_by_text("Import a run", exact=True).click()
    place = tab.page.get_by_test_id("stPopoverBody")
    expect(place).to_be_visible()
    file: FilePayload = {"name": "a.zip", "mimeType": "application/zip", "buffer": bundle(brought)}
    place.locator("input[type=file]").set_input_files(file)
    expect(tab.main.get_by_role("link", name="Watch Far away")).to_be_visible()
    expect(place).to_have_count(0)
    runs += [run for run in server.store.list() if run.meta.name == "Far away"]
    for run in runs:
        tick = row(tab, run).get_by_role("checkbox", name=f"Choose {run.meta.name}")
        expect(tick).not_to_be_checked()
        row(tab, run).locator(f".st-key-pick-{run.id} label").click()
        expect(tick).to_be_checked()
        tab.settle()
    tab.main.get_by_role("button", name="Compare 2 runs").click()
    expect(tab.main.get_by_role("heading", name="Compare")).to_be_visible()
    for run in runs:
        assert run.id in tab.page.url

    # back and forward leave the dialogs behind
    tab.page.go_back()
    expect(row(tab, run)).to_be_visible()
    tab.settle()
    menu(tab, run).get_by_role("button", name="Name, tags and note").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    tab.settle()  # a page drawn after a step back would be a new entry of the history
    tab.page.go_forward()
    expect(tab.main.get_by_role("heading", name="Compare")).to_be_visible()
    expect(dialog).to_have_count(0)
    tab.page.go_back()
    expect(row(tab, run)).to_be_visible()
    tab.settle()
    expect(dialog).to_have_count(0)


@pytest.mark.wide
def test_large_files_after_another_are_answered(open_tab: OpenTab) -> None:
    tab = open_tab("runs")
    place = tab.page.get_by_test_id("stPopoverBody")
    content = bytes(MAX_PER_SESSION // 3 + 1)  # of which three are more than may lie there at once
    for name in ("a", "b", "c"):
        tab.main.get_by_text("Import a run", exact=True).click()
        file: FilePayload = {"name": f"{name}.zip", "mimeType": "", "buffer": content}
        place.locator("input[type=file]").set_input_files(file)
        expect(place).to_have_count(0)
        expect(tab.main).to_contain_text(f"{name}.zip was not imported: This is not a readable zip")

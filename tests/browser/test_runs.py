"""The Runs page: rename, delete, undo; a damaged run stands beside sound ones."""

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


UNNAMED = """nodes => nodes.filter(node => !(node.getAttribute('aria-label') || node.textContent))
    .map(node => node.outerHTML)"""
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


def test_a_run_is_renamed_deleted_and_brought_back(open_tab: OpenTab, server: AppServer) -> None:
    run = server.store.create(SHORT, name="Before", state="stopped")
    tab = open_tab("runs")
    rename(tab, run, "*After*")
    expect(row(tab, run)).to_contain_text("*After*")
    tab.reload()
    expect(row(tab, run)).to_contain_text("*After*")
    menu(tab, run).get_by_role("button", name="Delete").click()
    expect(row(tab, run)).to_have_count(0)
    expect(tab.main.get_by_text("Deleted *After*.")).to_be_visible()
    undo = tab.main.get_by_role("button", name="Undo *After*")
    undo.click()
    expect(row(tab, run)).to_be_visible()
    expect(undo).to_have_count(0)


def test_a_zip_is_brought_and_its_place_closes_and_leads_to_the_run(
    open_tab: OpenTab, server: AppServer, tmp_path: Path
) -> None:
    run = RunStore(tmp_path, recorded=None).create(SHORT, name="Far away", state="stopped")
    tab = open_tab("runs")
    tab.main.get_by_text("Import a run", exact=True).click()
    place = tab.main.locator("details", has_text="Import a run")
    expect(place).to_have_attribute("open", "")
    file: FilePayload = {"name": "a.zip", "mimeType": "application/zip", "buffer": bundle(run)}
    place.locator("input[type=file]").set_input_files(file)
    watch = tab.main.get_by_role("link", name="Watch Far away")
    expect(watch).to_be_visible()
    expect(place).not_to_have_attribute("open", "")
    watch.click()
    expect(tab.main.get_by_role("heading", name="Far away")).to_be_visible()
    tab.goto("runs")
    expect(watch).to_have_count(0)


def test_a_large_file_after_another_reaches_the_server_and_is_answered(open_tab: OpenTab) -> None:
    tab = open_tab("runs")
    tab.main.get_by_text("Import a run", exact=True).click()
    content = bytes(MAX_PER_SESSION // 3 + 1)  # of which three are more than may lie there at once
    for name in ("a", "b", "c"):
        place = tab.main.locator("details", has_text="Import a run")
        file: FilePayload = {"name": f"{name}.zip", "mimeType": "", "buffer": content}
        place.locator("input[type=file]").set_input_files(file)
        expect(place).to_contain_text(f"{name}.zip was not imported: This is not a readable zip")


MARKS = r"1. *a* _b_ `c` [d](e) $f$ ~~g~~ <b>h</b> # :red[i] &lt; | {j} \k (v1.2-x)!"


def test_the_name_of_a_run_is_shown_as_it_was_typed(open_tab: OpenTab, server: AppServer) -> None:
    run = server.store.create(SHORT, name=MARKS, state="stopped")
    tab = open_tab(f"runs?run={run.id}")
    expect(row(tab, run)).to_contain_text(MARKS)
    expect(tab.strip).to_contain_text(MARKS)


NAME = "![i](http://x.example/y.png) <b> :red[x] $x$ [l](javascript:1)"


def test_a_name_is_shown_on_every_page_as_it_was_typed_and_asks_for_nothing(
    open_tab: OpenTab, server: AppServer
) -> None:
    run = server.store.fork("recorded-korean", steps=1001)
    tab = open_tab("runs")
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    rename(tab, run, NAME)
    shown = NAME.replace("://", "\u2060://")
    expect(row(tab, run)).to_contain_text(shown)
    compared = f"parameters?show=run&run={run.id}&versus=run:{run.id}"
    for path in ("", f"train?run={run.id}", f"attention?run={run.id}", compared):
        tab.goto(path)
        expect(tab.page.get_by_text(shown).first).to_be_visible()
        marked = tab.page.locator("img[src*='y.png'], a[href^='javascript'], b:has-text(':red')")
        expect(marked).to_have_count(0)
    assert [url for url in asked if "x.example" in url] == []


ADDRESSES = "http://x.example/y www.x.example a@x.example"


def test_an_address_in_a_name_a_tag_or_a_note_is_no_link(
    open_tab: OpenTab, server: AppServer
) -> None:
    run = server.store.fork("recorded-korean", steps=1001)
    server.store.label(run.id, name=ADDRESSES, tags=["www.x.example"], note=ADDRESSES)
    tab = open_tab("runs")
    for path in ("runs", "train", "compare", "walk", "knockouts", "parameters", "translate"):
        tab.goto(f"{path}?run={run.id}" + (f"&runs={run.id}" if path == "compare" else ""))
        expect(tab.page.get_by_text("x.example").first).to_be_visible()
        expect(tab.page.locator("a[href*='x.example']")).to_have_count(0)


def test_a_damaged_run_says_so_while_others_can_be_opened(
    open_tab: OpenTab, server: AppServer
) -> None:
    broken = server.store.create(SHORT, name="Broken", state="stopped")
    (broken.folder / "experiment.json").write_text("{ garbage", encoding="utf-8")
    tab = open_tab("runs")
    expect(row(tab, broken)).to_contain_text("Damaged")
    expect(row(tab, broken)).to_contain_text("This run is damaged: experiment.json is not valid.")
    sound = server.store.get("recorded-korean")
    row(tab, sound).get_by_role("button", name=sound.meta.name, exact=True).click()
    expect(tab.main.get_by_role("heading", name=sound.meta.name)).to_be_visible()
    for page in ("train", "attention"):
        tab.goto(f"{page}?run={broken.id}")
        expect(tab.main.get_by_role("alert")).to_contain_text("experiment.json is not valid")
    tab.goto("runs")
    menu(tab, broken).get_by_role("button", name="Delete").click()
    expect(row(tab, broken)).to_have_count(0)


def test_a_run_opens_at_the_top_of_its_page_and_every_tab_stop_is_of_use(
    open_tab: OpenTab, server: AppServer
) -> None:
    for number in range(6):
        server.store.create(SHORT, name=f"Run {number}", state="stopped")
    tab = open_tab("runs")
    sound = server.store.get("recorded-korean")
    assert tab.main.locator("button, a").evaluate_all(UNNAMED) == []
    expect(row(tab, sound).get_by_role("img", name="Training accuracy")).to_be_visible()
    row(tab, sound).get_by_role("button", name=sound.meta.name, exact=True).click()
    expect(tab.main.get_by_role("heading", name=sound.meta.name)).to_be_in_viewport()
    assert tab.page.evaluate(SCROLLED) == 0


def test_the_list_is_searched_as_one_types(open_tab: OpenTab, server: AppServer) -> None:
    tab = open_tab("runs")
    korean = server.store.get("recorded-korean")
    digits = server.store.get("recorded-digits")
    words = tab.main.get_by_placeholder("name, #tag, note, group, setting")
    words.press_sequentially("korean")  # and no Enter: the list follows as one types
    expect(row(tab, digits)).to_have_count(0)
    expect(row(tab, korean)).to_be_visible()
    words.fill("nothing is called that")
    expect(tab.main.get_by_text("No run matches")).to_be_visible()


def test_ticked_runs_are_compared_and_labelled(open_tab: OpenTab, server: AppServer) -> None:
    runs = [
        server.store.create(SHORT.replace(seed=k), name="Twin", state="stopped") for k in (3, 5)
    ]
    tab = open_tab("runs")
    for run, seed in zip(runs, (3, 5), strict=True):
        expect(row(tab, run)).to_contain_text(f"seed {seed}")
        expect(row(tab, run).get_by_role("checkbox", name="Choose Twin")).not_to_be_checked()
        row(tab, run).locator(f".st-key-pick-{run.id} label").click()
        tab.settle()
    tab.main.get_by_role("button", name="Label", exact=True).click()
    group = tab.page.get_by_role("textbox", name="Group", exact=True)
    group.fill("*Pair*")
    group.press("Enter")
    tab.settle()
    tab.page.get_by_role("button", name="Set group").click()
    for run in runs:
        expect(row(tab, run)).to_contain_text("*Pair*")
    tab.main.get_by_role("button", name="Compare 2 runs").click()
    expect(tab.main.get_by_role("heading", name="Compare")).to_be_visible()
    for run in runs:
        assert run.id in tab.page.url


def test_back_and_forward_leave_the_dialogs_behind(open_tab: OpenTab, server: AppServer) -> None:
    run = server.store.create(SHORT, name="Here and there", state="stopped")
    tab = open_tab(f"train?run={run.id}")
    tab.go_to("Watch", "Runs")
    tab.settle()
    menu(tab, run).get_by_role("button", name="Name, tags and note").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    tab.settle()
    tab.page.go_back()
    expect(tab.title).to_have_text(run.meta.name)
    expect(dialog).to_have_count(0)
    tab.button("Publish").click()
    expect(dialog).to_be_visible()
    tab.settle()
    tab.page.go_forward()
    expect(row(tab, run)).to_be_visible()
    tab.settle()
    expect(dialog).to_have_count(0)
    assert tab.problems == []


def test_no_browser_translates_the_badge_of_a_run_or_its_figures(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=recorded-korean")
    for selector in (".stMarkdownBadge", ".main-svg"):
        part = tab.page.locator(selector).first
        expect(part).to_be_visible()
        expect(part).to_have_attribute("translate", "no")

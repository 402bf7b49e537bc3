"""Any run is bearable everywhere: beside one of each kind a page is drawn and a command answers."""

from __future__ import annotations

import itertools
import re
import shutil
from urllib.parse import urlencode

import pytest

from pages import publish, widget
from pages.app.navigation.page_table import FINDINGS, PAGES
from pages.app.runs import runs_access
from tests.pages.looking import said
from tests.pages.opening import opened_at
from tests.pages.shown import assert_as_recorded, shown_at_last
from tests.runs.every_kind import KINDS, every_kind
from tfm_core.cli import FAILED, WRONG_INPUT, main
from tfm_core.export.exports import EXPORTS
from tfm_core.runs.queue import local_workers
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

pytestmark = pytest.mark.usefixtures("digits_are_read")

SHOWING = ("train", "attention", "walk", "knockouts")
"""Pages of which every landing opens each kind of run; the others are wide."""
OTHERS = [page.name for page in PAGES.values() if page.shows_run and page.name not in SHOWING]
OF_ANY_RUN = ("sinks", "specialise")
"""Findings that show any run."""
BROKEN = ("damaged", "newer")
LOOPS = ("loop", "killed-loop")
TRAINED = ("trained", "stopped", "interrupted", "imported")  # with a checkpoint of plain weights
TAKEN = {  # command -> the kinds that it makes a file of; the others are refused in a sentence
    "zip": (*TRAINED, "failed", *LOOPS),
    "hugging-face": ("fine-tuned",),
    "tensorboard": tuple(kind for kind in KINDS if kind not in BROKEN),
    "film": tuple(kind for kind in KINDS if kind not in BROKEN),
    "onnx": TRAINED,
    "film of the model": TRAINED,
    "import": (*TRAINED, "failed", *LOOPS),
    "resume": ("stopped", "interrupted"),
    "further": (*TRAINED, "fine-tuned"),
}
CHANGING = ("import", "resume", "further")  # what lies in the store
SLOW = ("onnx", "film of the model")  # they trace a model


@pytest.fixture(scope="module")
def ids(tmp_path_factory):
    """Kind -> id of a run, in a store that tests only read."""
    folder = tmp_path_factory.mktemp("every-kind") / "runs"
    numbers = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFM_RUNS_DIR", str(folder))
        patch.setattr("tfm_core.runs.store.new_id", lambda: f"made-as-number-{next(numbers):02}")
        made = every_kind(folder)
    return made | {"root": str(folder)}


@pytest.fixture
def store(ids, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", ids["root"])
    monkeypatch.setattr(local_workers, "default_size", lambda: 0)
    shared = runs_access.store()
    monkeypatch.setattr(shared, "recorded", None)
    return shared


@pytest.fixture
def copied(ids, tmp_path, monkeypatch):
    """A copy of the store, which a command may change."""
    shutil.copytree(ids["root"], tmp_path / "runs")
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return RunStore(recorded=None)


def drawn(page, caplog, **query):
    """Open a page; it shows what it showed, and neither it nor the log holds an error."""
    app = opened_at(PAGES[page].file, **query)
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []
    assert_as_recorded(shown_at_last(app, page), page, f"every-kind&{urlencode(query)}")
    return app


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_drawn_beside_one_of_each(page, store, caplog):
    drawn(page, caplog)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("page", SHOWING)
def test_a_page_is_drawn_with_it(page, kind, ids, store, caplog):
    drawn(page, caplog, run=ids[kind])


@pytest.mark.wide
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("page", OTHERS)
def test_every_other_page_is_drawn_with_it(page, kind, ids, store, caplog):
    drawn(page, caplog, run=ids[kind])


@pytest.mark.wide
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("finding", OF_ANY_RUN)
def test_a_finding_is_drawn_with_it(finding, kind, ids, store, caplog):
    drawn("findings", caplog, finding=finding, run=ids[kind])


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_is_drawn_beside_one_of_each(finding, store, caplog):
    drawn("findings", caplog, finding=finding)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_compared_with_a_trained_run(kind, ids, store, caplog):
    drawn("compare", caplog, runs=f"{ids['trained']},{ids[kind]}")


def test_all_are_listed_on_runs_and_on_the_command_line(ids, store, caplog, capsys):
    app = drawn("runs", caplog)
    shown = said(app) + " ".join(button.label for button in app.button)
    assert main(["runs"]) == main(["runs", "--json"]) == 0
    lines = capsys.readouterr().out
    assert re.search(rf"{ids['opened']} +opened +– ", lines)
    assert re.search(rf"{ids['stopped']} +stopped +3/5 ", lines)
    for kind in KINDS:
        assert kind in shown
        assert ids[kind] in lines


@pytest.mark.parametrize("command", [["presets"], ["devices"], ["doctor"]])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_command_for_all_answers_beside_one_of_each(command, form, copied, capsys):
    before = {run.id for run in copied.list()}
    assert main([*command, *form]) in (0, FAILED)  # the doctor counts damaged runs as problems
    assert capsys.readouterr().out
    assert {run.id for run in copied.list()} == before


def attempt(command, run_id, folder):
    """Run a command over a run; return its exit code."""
    target = str(folder / "made")
    if command.startswith("film"):
        return publish.main([run_id, "--to", target, *["--model"][: command != "film"]])
    if command == "import":
        code = main(["export", run_id, "--out", target])
        return code or main(["import", target])
    if command == "resume":
        return main(["resume", run_id, "--quiet"])
    if command == "further":
        return main(["further", run_id, "--steps", "9", "--quiet"])
    kind = [] if command == "zip" else [f"--{command}"]
    return main(["export", run_id, "--out", target, *kind])


ATTEMPTS = [
    pytest.param(
        command,
        kind,
        marks=[pytest.mark.wide] if command in SLOW and kind in TAKEN[command] else [],
    )
    for command in TAKEN
    for kind in KINDS
]


@pytest.mark.parametrize(("command", "kind"), ATTEMPTS)
def test_a_command_does_its_work_or_says_why_not(command, kind, ids, request, tmp_path, capsys):
    request.getfixturevalue("copied" if command in CHANGING else "store")
    code = attempt(command, ids[kind], tmp_path)
    error = capsys.readouterr().err
    if kind in TAKEN[command]:
        assert (code, error) == (0, "")
    elif (command, kind) == ("resume", "failed"):  # it is begun again, and fails again
        assert code == FAILED
        assert "is probably too high" in error
    else:
        assert code == WRONG_INPUT
        assert error.endswith(".\n")
        assert error.count("\n") == 1


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("command", ["resume", "further"])
def test_a_loop_goes_on_in_its_own_program(command, kind, ids, copied, tmp_path, capsys):
    attempt(command, ids[kind], tmp_path)
    assert "another program" in capsys.readouterr().err


def test_a_film_has_no_place_in_a_folder_that_is_not_there(ids, store, tmp_path, capsys):
    path = tmp_path / "missing" / "film.html"
    assert publish.main([ids["trained"], "--to", str(path)]) == WRONG_INPUT
    error = capsys.readouterr().err
    assert str(path.parent) in error
    assert error.count("\n") == 1


def test_each_export_is_tried():
    assert {export.name for export in EXPORTS} <= set(TAKEN)


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_it_or_says_why_not(kind, ids, store):
    if kind in BROKEN:
        with pytest.raises(StudentError, match="damaged"):
            widget.contents(ids[kind])
    else:
        name, page, _pictures = widget.contents(ids[kind])
        assert name == kind
        assert "<html" in page

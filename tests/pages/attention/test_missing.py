"""What the attention page says of runs that have nothing, or something damaged, to show."""

import shutil

from tests.inspect.constructed import (
    constructed_run,
    text_experiment,
    vit_experiment,
    write_state,
)
from tests.pages.looking import animation, grid, opened, said
from tfm_core.runs.record.snapshots import snapshot_path


def test_a_run_without_probe_or_snapshots_says_whether_they_come(store):
    run = store.create(text_experiment())
    write_state(run, "starting")
    assert "no probe yet" in opened(run).info[0].value
    at = opened(constructed_run(store, text_experiment(), state="running", steps=()))
    assert "This run has no snapshot yet. The first one appears" in at.info[0].value
    at = opened(constructed_run(store, text_experiment(), steps=()))
    assert "no readable snapshot" in at.error[0].value


def test_a_snapshot_that_fits_nothing_is_named_and_a_truncated_one_not_offered(store):
    run = constructed_run(store, text_experiment())
    other = constructed_run(store, vit_experiment())
    shutil.copy(snapshot_path(other.folder, 2), snapshot_path(run.folder, 2))
    at = opened(run, step="2")
    assert "The snapshot 00000002.safetensors is damaged" in at.error[0].value
    at.button(key="attention-next").click().run()
    assert not at.error
    assert grid(at)[1].size
    run = constructed_run(store, text_experiment())
    path = snapshot_path(run.folder, 2)
    path.write_bytes(path.read_bytes()[:-9])
    assert animation(opened(run))[0] == [0, 11]


def test_a_run_deleted_while_it_is_looked_at_leaves_a_page_that_helps(store):
    run = constructed_run(store, text_experiment())
    at = opened(run)
    store.delete(run.id)
    at.run()
    assert "No run to show" in said(at)


def test_without_a_chosen_run_the_newest_with_snapshots_is_opened_at_once(store):
    constructed_run(store, text_experiment())
    run = constructed_run(store, vit_experiment())
    constructed_run(store, text_experiment(), steps=())
    at = opened()
    assert grid(at)[1].shape == (2, 3, 16, 16)
    assert "the newest run that fits this page" in said(at)
    at.button_group(key="attention-small").set_value("matrix").run()
    assert at.query_params["run"] == run.id
    assert "the newest run" in said(at)  # what stands below it does not move

"""A run taken away and brought again is the same run: of every preset, of any configuration."""

import io
import os

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.export.exported import assert_same_run, is_valid, small, untrained
from tests.runs.comparing import assert_same as assert_trained_alike
from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.model import MODEL_CONFIGS
from tfm_core.choices.config.task import tasks_for
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.cells import CELLS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.optimisers import OPTIMISERS
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.export.bundle import MAX_SNAPSHOT_BYTES, bundle, chosen_snapshots
from tfm_core.export.importer import import_run
from tfm_core.inspect.attention.trained import data_of
from tfm_core.made_with import versions
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore

OWNER = "a" * 64


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("here") / "runs", recorded=None)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("there") / "runs", recorded=None)


def brought(run, store, **settings):
    return import_run(io.BytesIO(bundle(run)), store, **settings)


KINDS = {  # the first preset of each family and kind of task
    (one.experiment.model.family, one.experiment.task.kind): name
    for name, one in reversed(PRESETS.items())
}


@pytest.mark.core(3)
@pytest.mark.parametrize("name", KINDS.values())
def test_a_trained_run_of_each_kind_comes_back_as_it_was(name, store, elsewhere):
    run = store.create(small(PRESETS[name].experiment), name=f"A {name}", preset=name)
    assert execute(run).state == "finished"
    again = brought(run, elsewhere, owner=OWNER)
    assert_same_run(run, again)
    if run.probe().kind == "image":  # so that nobody needs its data set to ask it
        data, probe = data_of(run.experiment), again.probe()
        assert (probe.mean, probe.std) == (data.mean.tolist(), data.std.tolist())
    assert again.status.state == "finished"
    assert again.damage is None
    assert (again.meta.name, again.meta.preset, again.meta.owner) == (f"A {name}", name, OWNER)
    assert again.origin.id == run.id
    assert again.origin.versions == versions()
    assert run.origin is None
    twice = brought(again, store)
    assert_same_run(run, twice)


@pytest.mark.parametrize("name", ["recorded-korean", "recorded-digits", "recorded-grammar"])
def test_a_recorded_run_becomes_an_ordinary_one(name, elsewhere):
    run = RunStore().get(name)
    again = brought(run, elsewhere)
    assert_same_run(run, again)
    assert not again.meta.recorded
    assert again.origin.created == run.meta.created


CHOICES = {
    "position": POSITIONS,
    "activation": ACTIVATIONS,
    "norm": NORMS,
    "pooling": POOLINGS,
    "cell": CELLS,
    "attention": ALIGNMENT_SCORES,
    "tie_embeddings": (True, False),
    "bias": (True, False),
    "n_kv_heads": (0, 1, 2),
    "qk_norm": (True, False),
    "sink": SINKS,
    "norm_first": (True, False),
}


@st.composite
def experiments(draw):
    family = draw(st.sampled_from(sorted(MODEL_CONFIGS)))
    values = default_sections(family, draw(st.sampled_from(sorted(tasks_for(family)))))
    if "captions" in values["task"]["name"] or values["task"]["name"] == "mnist":
        values = default_sections("encoder-only", "sentiment")
    values["seed"] = draw(st.integers(0, 2**31 - 1))
    for name, known in CHOICES.items():
        if name in values["model"]:
            values["model"][name] = draw(st.sampled_from(sorted(known)))
    values["training"]["optimizer"] = draw(st.sampled_from(sorted(OPTIMISERS)))
    values["training"]["patience"] = draw(st.sampled_from((0, 2)))
    assume(is_valid(values))
    return small(Experiment.parse(values))


@given(experiment=experiments())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_run_of_any_configuration_comes_back_as_it_was(store, elsewhere, experiment):
    run = untrained(store, experiment)
    assert_same_run(run, brought(run, elsewhere))


def test_a_stopped_run_goes_on_elsewhere_as_if_it_had_never_left(store, elsewhere):
    whole = store.create(tiny(steps=7, patience=3, validate_every=2))
    execute(whole)
    run = store.create(whole.experiment)
    assert execute(run, *stopping_at(4, run)).state == "stopped"
    again = brought(run, elsewhere)
    assert again.status.reason == run.status.reason
    assert execute(again).state == "finished"
    assert_trained_alike(again, whole)


def test_of_many_large_snapshots_some_are_taken_the_first_and_the_last_among_them(
    store, elsewhere, monkeypatch
):
    run = store.create(tiny(steps=6, snapshots=7))
    execute(run)
    steps = run.snapshot_steps()
    assert len(steps) > 3
    assert chosen_snapshots(run)[1] == 0
    largest = sum(path.stat().st_size for path in (run.folder / "snapshots").iterdir())
    monkeypatch.setattr("tfm_core.export.bundle.MAX_SNAPSHOT_BYTES", largest // 2)
    assert largest < MAX_SNAPSHOT_BYTES
    again = brought(run, elsewhere)
    kept = again.snapshot_steps()
    assert set(kept) < set(steps)
    assert (kept[0], kept[-1]) == (steps[0], steps[-1])


def test_what_was_brought_outlives_a_power_cut(store, elsewhere, monkeypatch):
    run = store.create(tiny(steps=2, snapshots=2))
    execute(run)
    synced, fsync = set(), os.fsync

    def noted(file):
        synced.add(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    folder = brought(run, elsewhere).folder
    files = [path for name in ("snapshots", "kept") for path in (folder / name).glob("*")]
    files += [folder / "events.jsonl", folder / "experiment.json"]
    assert len(files) > 3
    assert {path.stat().st_ino for path in files} <= synced


def test_tags_note_and_group_go_along(store, elsewhere):
    run = untrained(store, tiny())
    store.label(run.id, tags=["wide", "für später"], note="Two\nlines.", group="Widths")
    again = brought(run, elsewhere)
    assert again.labels.tags == ("wide", "für später")
    assert (again.labels.note, again.labels.group) == ("Two\nlines.", "Widths")
    assert brought(untrained(store, tiny()), elsewhere).labels.tags == ()

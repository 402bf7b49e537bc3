"""A run as a zip, with or without its set: what comes back is what went out."""

import dataclasses
import io
import json
import os
import shutil
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from tests.data.user_data.files import pictures_report
from tests.data.user_data.test_texts import LABELS, PAIRS
from tests.export.exported import (
    assert_same_run,
    is_valid,
    members,
    packed,
    small,
    unpacked,
    untrained,
)
from tests.runs.comparing import assert_same as assert_trained_alike
from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.model import MODEL_CONFIGS
from tfm_core.choices.config.task import tasks_for
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.choices.variants.stems import POOLINGS
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.pictures import Split, arranged
from tfm_core.data.user_data.texts import inspect_text
from tfm_core.export import layout
from tfm_core.export.archive import Refused
from tfm_core.export.bundle import (
    MAX_SNAPSHOT_BYTES,
    bundle,
    chosen_snapshots,
    estimate,
    file_name,
    own_set,
)
from tfm_core.export.importer import import_run
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.inspect.attention.trained import data_of
from tfm_core.made_with import versions
from tfm_core.runs.process.execute import execute
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

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


@pytest.fixture
def with_recorded(tmp_path):
    return RunStore(tmp_path / "runs")


def test_the_model_of_the_zip_answers_with_its_weights_and_torch_alone(with_recorded, tmp_path):
    run = with_recorded.get("recorded-korean")
    folder = unpacked(bundle(run), tmp_path / "taken")
    text = "the cat ate an apple"
    command = [sys.executable, "-I", layout.MODEL, "--checkpoint", layout.WEIGHTS, text]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == look_at_text(run, text).answer_text


def test_the_metrics_are_the_curves(with_recorded):
    run = with_recorded.get("recorded-korean")
    table = pd.read_csv(io.BytesIO(members(bundle(run))[layout.METRICS]))
    curves = run.curves()
    for split, series in (
        ("train", curves.steps),
        ("validation", curves.validation),
        ("test", curves.test),
    ):
        rows = table[table["split"] == split]
        assert rows["step"].tolist() == series["step"].tolist()
        np.testing.assert_allclose(rows["loss"], series["loss"], rtol=1e-6)


def test_what_is_in_the_zip_says_who_made_it(with_recorded):
    run = with_recorded.get("recorded-korean")
    parts = members(bundle(run))
    facts = json.loads(parts[layout.FACTS])
    assert facts["seed"] == run.experiment.seed
    assert {"tfm_core", "torch", "python"} <= facts["versions"].keys()
    assert "owner" not in facts
    for name in set(parts) - {layout.README}:
        top = f"{name.split('/')[0]}/" if "/" in name else name
        assert top in parts[layout.README].decode()
    assert not [name for name in parts if name.endswith((".pt", ".pkl", ".pth"))]


def test_the_same_run_makes_the_same_zip_and_about_as_large_as_it_says(with_recorded):
    run = with_recorded.get("recorded-digits")
    one = bundle(run)
    assert one == bundle(run)
    assert 0.5 < estimate(run) / len(one) < 2
    assert file_name(run) == "digits-recorded-recorded.zip"


def test_progress_is_said_from_nothing_to_all(with_recorded):
    heard = []
    bundle(with_recorded.get("recorded-korean"), lambda share, words: heard.append((share, words)))
    shares = [share for share, _words in heard]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert all(words for _share, words in heard)


def test_a_run_without_a_checkpoint_says_that_it_has_no_weights(with_recorded, tmp_path):
    run = with_recorded.create(tiny(), state="stopped")
    write_status(run.folder, Status("stopped", step=0, total_steps=7))
    folder = unpacked(bundle(run), tmp_path / "taken")
    assert not (folder / layout.WEIGHTS).exists()
    assert "No weights are included" in (folder / layout.README).read_text()


def test_weights_that_are_no_numbers_stay_here(with_recorded):
    run = untrained(with_recorded, tiny())
    path = run.folder / "checkpoints" / "last" / "checkpoint.safetensors"
    broken = {name: value * np.float32(np.nan) for name, value in load_file(path).items()}
    save_file(broken, path, {"trainer": "{}"})
    parts = members(bundle(run))
    assert layout.WEIGHTS not in parts
    assert "are not finite" in " ".join(parts[layout.README].decode().split())


def test_a_damaged_run_is_a_sentence(with_recorded):
    run = with_recorded.create(tiny())
    (run.folder / "experiment.json").write_text("{")
    with pytest.raises(StudentError, match=r"experiment\.json is not valid"):
        bundle(with_recorded.get(run.id))
    other = untrained(with_recorded, tiny())
    (other.folder / "checkpoints" / "last" / "checkpoint.safetensors").write_bytes(b"weights")
    with pytest.raises(StudentError, match="last checkpoint is damaged"):
        bundle(other)


RAW = {"pairs": PAIRS, "labels": LABELS, "text": "the cat sat on the mat. " * 50}


def small_pictures():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (40, 1, 28, 28), dtype=np.uint8)
    return arranged(pictures_report(images, np.arange(40) % 2), Split())


def prepared(kind):
    report = small_pictures() if kind == "pictures" else inspect_text(kind, RAW[kind])
    return kinds.prepare(report, name=f"My {kind}")


def run_on(store, kind):
    """A run that stopped at its first step, on a set that was added to its folder."""
    with sets.below(store.root):
        experiment = kinds.proposal(sets.write(prepared(kind))).experiment
        values = experiment.model_dump()
        values["training"] |= {"steps": 3, "batch_size": 4, "validate_every": 2, "snapshots": 2}
        return untrained(store, Experiment.parse(values))


@pytest.mark.parametrize("kind", kinds.SET_KINDS)
def test_a_set_that_goes_along_is_learned_from_elsewhere(kind, here, there):
    run = run_on(here, kind)
    brought = import_run(io.BytesIO(bundle(run, with_set=True)), there)
    with sets.below(there.root):
        (own,) = sets.listed()
        assert own.id == sets.set_of(run.experiment.task)
        assert sets.missing(run.experiment.task) is None
    assert execute(brought).reason is None
    assert brought.status.state == "finished"


def test_without_being_asked_for_no_set_leaves(here, there):
    run = run_on(here, "pairs")
    content = bundle(run)
    assert not [name for name in members(content) if name.startswith(layout.SET)]
    assert b"The training data is not included" in b" ".join(
        members(content)[layout.README].split()
    )
    brought = import_run(io.BytesIO(content), there)
    assert brought.origin.data == "My pairs"
    with sets.below(there.root):
        assert sets.listed() == []
    assert own_set(brought) is None
    assert execute(brought).state == "failed"
    assert "import the run with its data" in brought.status.reason


def test_what_the_set_is_called_goes_on_from_zip_to_zip(here, there):
    brought = import_run(io.BytesIO(bundle(run_on(here, "pairs"))), there)
    assert import_run(io.BytesIO(bundle(brought)), here).origin.data == "My pairs"


def test_a_set_that_comes_with_the_app_stays_out_of_the_zip(here):
    with sets.below(here.root):
        run = untrained(here, kinds.proposal(sets.find("example-pairs")).experiment)
    content = members(bundle(run, with_set=True))
    assert own_set(run) is None
    assert not [name for name in content if name.startswith(layout.SET)]
    assert b"not here" not in content[layout.README]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("here"), recorded=None)
    return members(bundle(run_on(store, "pairs"), with_set=True))


def _set_json(parts, **values):
    said = json.loads(parts[f"{layout.SET}{sets.SET}"]) | values
    return parts | {f"{layout.SET}{sets.SET}": json.dumps(said).encode()}


def forged(parts, change):
    """The zip of a run whose set holds other files, and says so: every digest is right."""
    files = {
        name.removeprefix(layout.SET): content
        for name, content in parts.items()
        if name.startswith(layout.SET)
    }
    own = sets.read_from(lambda name, most: files[name])
    other = dataclasses.replace(own, files=change(dict(own.files)))
    experiment = json.loads(parts[layout.EXPERIMENT])
    experiment["task"]["data"] = sets.id_of(other)
    rest = {name: content for name, content in parts.items() if not name.startswith(layout.SET)}
    return (
        rest
        | {layout.EXPERIMENT: json.dumps(experiment).encode()}
        | {layout.SET + name: content for name, content in sets.files_of(other).items()}
    )


def _more_words(files):
    sides = json.loads(files["tokens.json"])
    sides[0]["words"].append("stranger")
    return files | {"tokens.json": json.dumps(sides).encode()}


_LINES, _TOKENS = f"{layout.SET}train.jsonl", f"{layout.SET}tokens.json"

CONTENTS = {
    "a line was changed": (
        lambda p: p | {_LINES: p[_LINES].replace(b"1", b"2", 1)},
        r"damaged: train\.jsonl was changed",
    ),
    "a file is missing": (
        lambda p: {name: content for name, content in p.items() if name != _LINES},
        r"damaged: train\.jsonl is missing",
    ),
    "nothing says what it is": (
        lambda p: {name: c for name, c in p.items() if name != f"{layout.SET}{sets.SET}"},
        r"damaged: set\.json is missing",
    ),
    "it says nothing": (
        lambda p: p | {f"{layout.SET}{sets.SET}": b'{"format": 1}'},
        r"set\.json is damaged",
    ),
    "no JSON": (lambda p: p | {f"{layout.SET}{sets.SET}": b"[" * 90_000}, "is not JSON"),
    "another name": (lambda p: _set_json(p, name="Forged"), "but the run uses"),
    "a path in a name": (
        lambda p: _set_json(p, files={"../../evil.txt": "0" * 64}),
        "set.json is damaged",
    ),
    "a path": (lambda p: p | {"set/../../evil": b"x"}, "unsafe file name"),
    "one more file": (lambda p: p | {f"{layout.SET}more.txt": b"x"}, "does not belong to a set"),
    "lines that are none": (
        lambda p: forged(p, lambda files: files | {"train.jsonl": b'{"a": 1}\n'}),
        "data in this zip is damaged",
    ),
    "tokens that are none": (
        lambda p: forged(p, lambda files: files | {"tokens.json": b"[1, 2]"}),
        "data in this zip is damaged",
    ),
    "another way to cut": (
        lambda p: forged(
            p,
            lambda files: (
                files | {"tokens.json": files["tokens.json"].replace(b'"words",', b'"x",')}
            ),
        ),
        "data in this zip is damaged|does not fit",
    ),
    "more words than the model has room for": (
        lambda p: forged(p, _more_words),
        "vocabulary of “My pairs” does not fit",
    ),
}


def refused(content, store, match):
    with pytest.raises(Refused, match=match):
        import_run(io.BytesIO(content), store)
    assert not store.root.exists() or list(store.root.iterdir()) == []


@pytest.mark.parametrize("name", CONTENTS)
def test_data_that_are_not_the_runs_set_are_refused(name, good, there):
    change, match = CONTENTS[name]
    refused(packed(change(good)), there, match)


def test_a_set_beside_a_run_that_learns_none_is_refused(good, there):
    experiment = json.loads(good[layout.EXPERIMENT])
    experiment["task"]["data"] = "example-pairs"
    parts = good | {layout.EXPERIMENT: json.dumps(experiment).encode()}
    refused(packed(parts), there, "but the run uses example-pairs")


def test_a_set_that_unpacks_to_too_much_is_refused(good, there, monkeypatch):
    monkeypatch.setattr(sets, "MAX_BYTES", 100)
    refused(packed(good), there, "the limit is 100 B")


def test_where_the_set_cannot_be_kept_the_run_is_not_either(good, there):
    def keep(own):
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        import_run(io.BytesIO(packed(good)), there, keep=keep)
    assert there.list() == []


def test_what_was_tried_before_it_is_kept_is_gone(good, there, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    import_run(io.BytesIO(packed(good)), there)
    assert set(tmp_path.iterdir()) - before <= {there.root}
    kept = there.root / sets.FOLDER / sets.set_of(there.list()[0].experiment.task)
    assert stat.S_ISDIR(kept.stat().st_mode)
    shutil.rmtree(there.root)

"""A set of one's own goes into a zip only where that is wanted, and comes out of it checked."""

import dataclasses
import io
import json
import shutil
import stat

import numpy as np
import pytest

from tests.data.own.files import pictures_report
from tests.data.own.test_texts import LABELS, PAIRS
from tests.export.exported import members, packed, untrained
from tfm_core.choices.config import Experiment
from tfm_core.data.own import kinds, place, sets
from tfm_core.data.own.pictures import Split, arranged
from tfm_core.data.own.texts import inspect_text
from tfm_core.export import layout
from tfm_core.export.archive import Refused
from tfm_core.export.bundle import bundle, own_set
from tfm_core.export.importer import import_run
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore

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
    with place.below(store.root):
        experiment = kinds.proposal(sets.write(prepared(kind))).experiment
        values = experiment.model_dump()
        values["training"] |= {"steps": 3, "batch_size": 4, "validate_every": 2, "snapshots": 2}
        return untrained(store, Experiment.parse(values))


@pytest.fixture
def here(tmp_path):
    return RunStore(tmp_path / "here", recorded=None)


@pytest.fixture
def there(tmp_path):
    return RunStore(tmp_path / "there", recorded=None)


@pytest.mark.parametrize("kind", kinds.SET_KINDS)
def test_a_set_that_goes_along_is_learned_from_elsewhere(kind, here, there):
    run = run_on(here, kind)
    brought = import_run(io.BytesIO(bundle(run, with_set=True)), there)
    with place.below(there.root):
        (own,) = sets.listed()
        assert own.id == sets.set_of(run.experiment.task)
        assert sets.missing(run.experiment.task) is None
    assert execute(brought).reason is None
    assert brought.status.state == "finished"


def test_without_being_asked_for_no_set_leaves(here, there):
    run = run_on(here, "pairs")
    content = bundle(run)
    assert not [name for name in members(content) if name.startswith(layout.SET)]
    assert b"The data that the model learned from are not here" in b" ".join(
        members(content)[layout.README].split()
    )
    brought = import_run(io.BytesIO(content), there)
    assert brought.origin.data == "My pairs"
    with place.below(there.root):
        assert sets.listed() == []
    assert own_set(brought) is None
    assert execute(brought).state == "failed"
    assert "import the run with its data" in brought.status.reason


def test_what_the_set_is_called_goes_on_from_zip_to_zip(here, there):
    brought = import_run(io.BytesIO(bundle(run_on(here, "pairs"))), there)
    assert import_run(io.BytesIO(bundle(brought)), here).origin.data == "My pairs"


def test_a_set_that_comes_with_the_app_stays_out_of_the_zip(here):
    with place.below(here.root):
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
        "data in this zip are damaged",
    ),
    "tokens that are none": (
        lambda p: forged(p, lambda files: files | {"tokens.json": b"[1, 2]"}),
        "data in this zip are damaged",
    ),
    "another way to cut": (
        lambda p: forged(
            p,
            lambda files: (
                files | {"tokens.json": files["tokens.json"].replace(b'"words",', b'"x",')}
            ),
        ),
        "data in this zip are damaged|does not fit",
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
    kept = there.root / place.FOLDER / sets.set_of(there.list()[0].experiment.task)
    assert stat.S_ISDIR(kept.stat().st_mode)
    shutil.rmtree(there.root)

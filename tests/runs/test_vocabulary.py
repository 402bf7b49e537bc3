"""A run keeps the vocabulary of its set: it reads and writes where the set is gone."""

import io
import json
import random
import shutil

import pytest

from tests.data.own.test_texts import LABELS, PAIRS
from tests.export.exported import members, packed
from tfm_core.choices.config import Experiment
from tfm_core.data.corpus import task as corpus_texts
from tfm_core.data.own import kinds, place, sets
from tfm_core.data.own.sets import SetMissing
from tfm_core.data.own.texts import inspect_text, prepare
from tfm_core.data.tasks import text_task
from tfm_core.data.vocabulary import UNK
from tfm_core.export import layout
from tfm_core.export.archive import Refused
from tfm_core.export.bundle import bundle
from tfm_core.export.importer import import_run
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.inspect.writing.source import source_of
from tfm_core.runs import own_sets
from tfm_core.runs.auth import Visitor
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore

RAW = {"pairs": PAIRS, "labels": LABELS, "text": "the cat sat on the mat. " * 50}
TYPED = {"pairs": "word1 and zebra", "labels": "the zebra was good", "text": "the zebra sat"}
HOST = Visitor("0" * 64, is_public=False)


@pytest.fixture
def here(tmp_path):
    return RunStore(tmp_path / "here", recorded=None)


@pytest.fixture
def there(tmp_path):
    return RunStore(tmp_path / "there", recorded=None)


def trained(store, kind, **options):
    """A run of three steps on a set that was added to its folder."""
    with place.below(store.root):
        own = sets.write(prepare(inspect_text(kind, RAW[kind], **options)))
        values = kinds.proposal(own).experiment.model_dump()
    values["training"] |= {"steps": 3, "batch_size": 4, "validate_every": 2, "snapshots": 2}
    run = store.create(Experiment.parse(values))
    assert execute(run).state == "finished"
    return run


def remove_set(store, run):
    corpus_texts.learned_task.cache_clear()  # as in a process that never saw the text
    own_sets.remove(sets.set_of(run.experiment.task), store=store, visitor=HOST)


def read(store, run, kind):
    """What a model says of a typed sentence."""
    with place.below(store.root):
        example = look_at_text(run, TYPED[kind])
        return example.answer, example.item


@pytest.mark.parametrize("kind", RAW)
def test_a_run_whose_set_was_removed_reads_as_before(here, kind):
    run = trained(here, kind)
    before = read(here, run, kind)
    remove_set(here, run)
    assert read(here, run, kind) == before
    with place.below(here.root):
        task = text_task(run.experiment.task)
        assert task.src_vocabulary.encode(task.tokenize(TYPED[kind])).count(UNK) == 1
        assert "is not here" in sets.missing(run.experiment.task)
        with pytest.raises(SetMissing):
            task.sample(random.Random(0))
        if kind == "pairs":
            assert source_of(run, TYPED[kind]).truth is None
    own_sets.undo(sets.set_of(run.experiment.task), store=here, visitor=HOST)
    with place.below(here.root):
        assert text_task(run.experiment.task).missing is None


def test_a_damaged_copy_of_a_vocabulary_is_passed_over(here):
    run = trained(here, "pairs")
    set_id = sets.set_of(run.experiment.task)
    damaged = here.root / "00-damaged" / sets.VOCABULARY
    shutil.copytree(run.folder / sets.VOCABULARY, damaged)
    manifest = damaged / set_id / sets.SET
    manifest.write_bytes(manifest.read_bytes() + b" ")
    remove_set(here, run)
    with place.below(here.root):
        assert sets.find_vocabulary(set_id).folder == run.folder / sets.VOCABULARY / set_id


@pytest.mark.parametrize("kind", RAW)
def test_a_run_that_is_brought_without_its_set_reads_as_it_did(here, there, kind):
    run = trained(here, kind)
    content = bundle(run)
    corpus_texts.learned_task.cache_clear()
    brought = import_run(io.BytesIO(content), there)
    assert read(there, brought, kind)[0] == read(here, run, kind)[0]
    with place.below(there.root):
        assert sets.listed() == []
    third = RunStore(there.root.parent / "third", recorded=None)
    again = import_run(io.BytesIO(bundle(brought)), third)
    assert read(third, again, kind)[0] == read(here, run, kind)[0]


def test_no_example_is_kept_and_the_zip_of_another_visitor_holds_no_name(here):
    run = trained(here, "pairs")
    kept = [path for path in (run.folder / sets.VOCABULARY).rglob("*") if path.is_file()]
    assert sorted(path.name for path in kept) == ["set.json", "tokens.json"]
    assert not any(b"und mehr" in path.read_bytes() for path in kept)
    with place.below(here.root):
        assert not [n for n in members(bundle(run, with_labels=False)) if "vocabulary" in n]


def _changed(parts, name, change):
    path = layout.VOCABULARY + name
    return parts | {path: json.dumps(change(json.loads(parts[path]))).encode()}


def _word_more(sides):
    sides[0]["words"].append("stranger")
    return sides


CHANGES = {
    "a word more": lambda parts: _changed(parts, "tokens.json", _word_more),
    "another name": lambda parts: _changed(parts, "set.json", lambda v: v | {"name": "other"}),
    "no tokens": lambda parts: {n: c for n, c in parts.items() if not n.endswith("tokens.json")},
    "a file more": lambda parts: parts | {layout.VOCABULARY + "train.jsonl": b"[]"},
    "no JSON": lambda parts: parts | {layout.VOCABULARY + "set.json": b"\xff"},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_vocabulary_that_is_not_that_of_the_set_is_refused(here, there, change):
    parts = members(bundle(trained(here, "pairs")))
    with pytest.raises(Refused):
        import_run(io.BytesIO(packed(change(parts))), there)
    assert there.list() == []

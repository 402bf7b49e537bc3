"""Runs on sets of one's own: trained, looked into, taken away, and opened without them."""

import io
import json
import random
import shutil

import pytest

from tests.data.user_data.test_texts import LABELS, PAIRS
from tests.export.exported import members, packed
from tfm_core.choices.config import Experiment, from_query, to_query
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.text_tasks import OWN_TEXT_TASKS
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.data.text import corpus as corpus_texts
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.sets import SetMissing
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.data.vocabulary import UNK
from tfm_core.export import layout
from tfm_core.export.archive import Refused
from tfm_core.export.bundle import bundle
from tfm_core.export.importer import import_run
from tfm_core.inspect.answers import answers, wrong_first
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.inspect.attention.trained import data_of, model_of, steps_of
from tfm_core.inspect.generation_source import source_of
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs import own_sets
from tfm_core.runs.auth import Visitor
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore
from tfm_core.trace.source.carried import carried
from tfm_core.trace.source.file import source_code
from tfm_core.trace.subject import subject
from tfm_core.trace.trace import trace

FAMILIES = [(name, family) for name, facts in OWN_TEXT_TASKS.items() for family in facts.families]

CASES = [
    *((name.removeprefix("own-"), family) for name, family in FAMILIES),
    ("text", "decoder-only"),
    ("text", "decoder-only", "bpe"),
]

RAW = {"pairs": PAIRS, "labels": LABELS, "text": "the cat sat on the mat. " * 50}

UNITS = {"encoder-decoder": "bpe", "recurrent": "characters"}


def made(kind, family, **options):
    """Return a small experiment on a set of one's own."""
    own = sets.write(prepare(inspect_text(kind, RAW[kind], **options)))
    values = default_sections(family, SET_TASKS[kind])
    values["model"] |= {"d_model": 16} if family == "recurrent" else {"d_model": 16, "n_heads": 2}
    values["task"] = kinds.task_of(own).model_dump()
    values["training"] |= {"steps": 4, "batch_size": 8, "validate_every": 2, "snapshots": 3}
    return Experiment.parse(values)


SET_TASKS = {kind: f"own-{kind}" for kind in kinds.SET_KINDS}


@pytest.fixture
def whole(tmp_path, monkeypatch, request):
    """A run that a worker trained which was told no more than its folder."""
    kind, family, *unit = request.param
    store = RunStore(tmp_path / "runs", recorded=None)
    with sets.below(store.root):
        options = {} if kind != "pairs" else {"unit": UNITS.get(family, "words")}
        options |= {"unit": unit[0]} if unit else {}
        experiment = made(kind, family, **options)
    run = store.create(experiment)
    assert execute(run).reason is None
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    return run


@pytest.mark.parametrize("whole", CASES, indirect=True, ids=lambda case: "-".join(case))
def test_a_run_on_a_set_of_ones_own_is_as_any(whole):
    run, experiment = whole, whole.experiment
    assert run.status.state == "finished"
    assert from_query(to_query(experiment)) == experiment
    probe = run.probe()
    assert len(run.snapshot_steps()) >= 2
    snapshot = run.snapshot(run.snapshot_steps()[-1])
    for modules in modules_by_kind(experiment).values():
        for name in modules:
            sizes = axes(experiment, probe.items[0], name).shape
            assert snapshot.attention[name].shape[2:] >= sizes
    model, _step = model_of(run)
    found = subject(experiment, model, items=probe.items[:2])
    assert len(trace(found)) > 5
    task = text_task(experiment.task)
    pair = task.sample(random.Random(0))
    typed = task.join_src(pair.src) if pair.src else task.join_tgt(pair.tgt[:3])
    answered = look_at_text(run, typed)
    if experiment.task.name != "own-text":
        assert len(wrong_first(run)) == len(data_of(experiment).validation)
    found = answers(run, steps_of(run)[-1])
    assert found.loss.mean() == pytest.approx(run.curves().validation.last("loss"), rel=1e-3)
    names = {"__name__": "generated"}
    exec(source_code(experiment.model, data_shape(experiment), data=carried(experiment)), names)
    generated = names["Model"]().eval()
    generated.load_state_dict(
        names["load"](run.folder / "checkpoints" / "last" / "checkpoint.safetensors")
    )
    if experiment.task.name == "own-pairs":
        assert generated.answer(typed) == answered.answer_text
    elif experiment.task.name == "own-labels":
        assert generated.label(typed)[0] == answered.answer_text
    else:
        assert generated.write(typed, n=3).startswith(typed)


@pytest.mark.parametrize("whole", CASES[:1], indirect=True, ids=["pairs"])
def test_a_run_whose_set_is_gone_opens_and_says_why_it_cannot_go_on(whole):
    store = RunStore(whole.folder.parent, recorded=None)
    again = store.fork(whole.id, steps=9)
    fresh = store.create(whole.experiment)
    shutil.rmtree(store.root / sets.FOLDER)
    assert whole.problem is None
    assert whole.probe().items
    assert whole.snapshot(whole.snapshot_steps()[0]).texts
    assert data_shape(whole.experiment).src_vocabulary == whole.experiment.task.n_src
    queue = RunQueue(store, max_running=1, warm=0)
    for ask, run in ((queue.submit, fresh), (queue.resume, again)):
        with pytest.raises(ValueError, match=r"is not here"):
            ask(run)
    assert "is not here" in fresh.status.reason
    assert execute(again).state == "failed"
    assert "is not here" in again.status.reason


TYPED = {"pairs": "word1 and zebra", "labels": "the zebra was good", "text": "the zebra sat"}

HOST = Visitor("0" * 64, is_public=False)


def trained(store, kind, **options):
    """A run of three steps on a set that was added to its folder."""
    with sets.below(store.root):
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
    with sets.below(store.root):
        example = look_at_text(run, TYPED[kind])
        return example.answer, example.item


@pytest.mark.parametrize("kind", RAW)
def test_a_run_whose_set_was_removed_reads_as_before(here, kind):
    run = trained(here, kind)
    before = read(here, run, kind)
    remove_set(here, run)
    assert read(here, run, kind) == before
    with sets.below(here.root):
        task = text_task(run.experiment.task)
        assert task.src_vocabulary.encode(task.tokenize(TYPED[kind])).count(UNK) == 1
        assert "is not here" in sets.missing(run.experiment.task)
        with pytest.raises(SetMissing):
            task.sample(random.Random(0))
        if kind == "pairs":
            assert source_of(run, TYPED[kind]).truth is None
    own_sets.undo(sets.set_of(run.experiment.task), store=here, visitor=HOST)
    with sets.below(here.root):
        assert text_task(run.experiment.task).missing is None


def test_a_damaged_copy_of_a_vocabulary_is_passed_over(here):
    run = trained(here, "pairs")
    set_id = sets.set_of(run.experiment.task)
    damaged = here.root / "00-damaged" / sets.VOCABULARY
    shutil.copytree(run.folder / sets.VOCABULARY, damaged)
    manifest = damaged / set_id / sets.SET
    manifest.write_bytes(manifest.read_bytes() + b" ")
    remove_set(here, run)
    with sets.below(here.root):
        assert sets.find_vocabulary(set_id).folder == run.folder / sets.VOCABULARY / set_id


@pytest.mark.parametrize("kind", RAW)
def test_a_run_that_is_brought_without_its_set_reads_as_it_did(here, there, kind):
    run = trained(here, kind)
    content = bundle(run)
    corpus_texts.learned_task.cache_clear()
    brought = import_run(io.BytesIO(content), there)
    assert read(there, brought, kind)[0] == read(here, run, kind)[0]
    with sets.below(there.root):
        assert sets.listed() == []
    third = RunStore(there.root.parent / "third", recorded=None)
    again = import_run(io.BytesIO(bundle(brought)), third)
    assert read(third, again, kind)[0] == read(here, run, kind)[0]


def test_no_example_is_kept_and_the_zip_of_another_visitor_holds_no_name(here):
    run = trained(here, "pairs")
    kept = [path for path in (run.folder / sets.VOCABULARY).rglob("*") if path.is_file()]
    assert sorted(path.name for path in kept) == ["set.json", "tokens.json"]
    assert not any(b"und mehr" in path.read_bytes() for path in kept)
    with sets.below(here.root):
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

"""Runs on sets of one's own are as any: trained, looked into, taken away; and open without them."""

import random
import shutil

import pytest

from tests.data.own.test_texts import LABELS, PAIRS
from tfm_core.choices.config import from_query, to_query
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.experiment import Experiment
from tfm_core.choices.config.own_tasks import OWN_TEXT_TASKS
from tfm_core.data.own import kinds, place, sets
from tfm_core.data.own.texts import inspect_text, prepare
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.inspect.attention.trained import data_of, model_of, steps_of
from tfm_core.inspect.errors.answers import answers, wrong_first
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs import RunStore
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue.run_queue import RunQueue
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
    with place.below(store.root):
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
    shutil.rmtree(store.root / place.FOLDER)
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

"""Averaged weights: they follow their formula, are tested, and go on from a checkpoint."""

import io
import itertools

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tests.training.going_on import resumed_at
from tests.training.test_loop import EXPERIMENTS, IDS, experiment, records
from tests.training.test_patience import RESTLESS
from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import data_shape
from tfm_core.export.bundle import bundle, curves_table
from tfm_core.export.importer import import_run
from tfm_core.export.layout import weight_names
from tfm_core.facts.memory import of_run
from tfm_core.plots import of_run as plots_of_run
from tfm_core.plots.training.curves import curve_lines
from tfm_core.runs.figures import figures, summary
from tfm_core.runs.notebook import OpenedRun
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.trace.source.file import source_code
from tfm_core.training import checkpoints
from tfm_core.training.checkpoints import FILE, CheckpointDamaged
from tfm_core.training.events import Measured, Step
from tfm_core.training.loop import build, train
from tfm_core.training.optimisation import AveragedWeights

pytestmark = pytest.mark.quick

DECAY = 0.8
AVERAGING = experiment(training={"ema_decay": DECAY})


def averaging(chosen, decay=DECAY):
    training = chosen.training.replace(ema_decay=decay)
    return Experiment.parse(chosen.model_dump() | {"training": training.model_dump()})


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def test_the_average_is_that_of_its_formula():
    trainer = build(experiment(model={"tie_embeddings": True}, training={"ema_decay": DECAY}))
    expected, n = state(trainer.model), 0
    for event in train(trainer):
        if isinstance(event, Step):
            n += 1
            kept = min(DECAY, (1 + n) / (10 + n))
            for name, value in trainer.model.state_dict().items():
                expected[name] = kept * expected[name] + (1 - kept) * value
    found = trainer.average.model.state_dict()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7)
    assert not any(torch.equal(found[name], value) for name, value in state(trainer.model).items())


def test_it_is_the_average_of_the_well_kept_library(monkeypatch):
    """Without a warm-up, which that one hasn't, and from the same beginning, which it copies."""
    monkeypatch.setattr("tfm_core.training.optimisation.decay_at", lambda decay, n: decay)
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5))
    mine = AveragedWeights(model, DECAY)
    theirs = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
    theirs.update_parameters(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(7):
        optimizer.zero_grad()
        model(torch.randn(11, 3)).square().sum().backward()
        optimizer.step()
        mine.update()
        theirs.update_parameters(model)
    assert_same(mine.model.state_dict(), theirs.module.state_dict())


@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=IDS)
def test_an_average_changes_nothing_of_what_is_trained(chosen):
    alone, averaged = build(chosen), build(averaging(chosen))
    without = list(records(alone))
    found = list(records(averaged))
    assert [one for one in found if one.get("weights") != "average"] == [
        one for one in without if one.get("split") != "test"
    ]
    assert not any("weights" in one for one in without)
    assert_same(averaged.model.state_dict(), alone.model.state_dict())


def test_each_validation_measures_both_and_the_test_the_average():
    trainer = build(AVERAGING)
    events = [event for event in train(trainer) if isinstance(event, Measured)]
    assert [(event.step, event.split, event.weights) for event in events[-3:]] == [
        (6, "validation", "last"),
        (6, "validation", "average"),
        (6, "test", "average"),
    ]
    last, average, test = events[-3:]
    with torch.inference_mode():
        model = trainer.average.model.eval()
        assert trainer.objective.measure(model, "validation")[0] == average.loss != last.loss
        assert trainer.objective.measure(model, "test")[0] == test.loss
    first, second = events[:2]
    assert (first.weights, second.weights) == ("last", "average")
    assert first.loss == second.loss, "before the first step they are the same"


def test_with_patience_the_average_is_waited_for_and_its_best_is_tested():
    trainer = build(experiment(training={**RESTLESS, "patience": 3, "ema_decay": 0.5}))
    events = list(train(trainer))
    losses = {
        event.step: event.loss
        for event in events
        if isinstance(event, Measured) and event.weights == "average" and event.split != "test"
    }
    del losses[0]
    test, finished = events[-2:]
    assert test.step == finished.best_step == min(losses, key=losses.get) < finished.step
    before = state(trainer.average.model)
    trainer.average.model.load_state_dict(trainer.best.weights)
    with torch.inference_mode():
        model = trainer.average.model
        assert trainer.objective.measure(model, "validation")[0] == min(losses.values())
        assert trainer.objective.measure(model, "test")[0] == test.loss
    assert any(not torch.equal(before[name], one) for name, one in trainer.best.weights.items())


@pytest.mark.parametrize("stop", [1, 3, 5])
@pytest.mark.parametrize("patience", [0, 3])
def test_a_training_that_goes_on_gives_the_same_curves_and_the_same_average(
    stop, patience, tmp_path
):
    chosen = experiment(training={"ema_decay": DECAY, "patience": patience})
    whole = build(chosen)
    expected = list(records(whole))
    resumed = resumed_at(chosen, stop, tmp_path)
    again = list(records(resumed))
    assert again[1:] == [event for event in expected[:-2] if event["step"] > stop] + expected[-2:]
    assert_same(resumed.average.model.state_dict(), whole.average.model.state_dict())
    assert resumed.average.n_updates == whole.average.n_updates == 6


def test_a_checkpoint_holds_the_average_and_without_one_it_begins_there(tmp_path):
    trainer = build(AVERAGING)
    list(train(trainer))
    checkpoints.save(trainer, tmp_path)
    model, step = checkpoints.load_model(trainer.experiment, tmp_path)
    assert step == 6
    assert_same(model.state_dict(), trainer.average.model.state_dict())
    trainer = build(experiment())
    list(itertools.islice(train(trainer), 12))
    checkpoints.save(trainer, tmp_path)
    resumed = build(AVERAGING)
    checkpoints.load(resumed, tmp_path)
    assert resumed.average.n_updates == 0
    assert_same(resumed.average.model.state_dict(), trainer.model.state_dict())
    list(train(resumed))
    assert resumed.average.n_updates == 6 - trainer.step


def test_an_average_of_another_model_is_said(tmp_path):
    trainer = build(AVERAGING)
    checkpoints.save(trainer, tmp_path)
    with safe_open(tmp_path / FILE, framework="pt") as file:
        metadata, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    for broken in (
        {key: value for key, value in tensors.items() if key != "average/output.weight"},
        tensors | {"average/output.weight": torch.zeros(2, 3)},
        tensors | {"average/unknown": torch.zeros(2)},
    ):
        save_file(broken, tmp_path / FILE, metadata)
        with pytest.raises(CheckpointDamaged, match="a model with another shape"):
            checkpoints.load(build(AVERAGING), tmp_path)
    odd = {"trainer": metadata["trainer"].replace('"averaged": 0', '"averaged": -3')}
    save_file(tensors, tmp_path / FILE, odd)
    with pytest.raises(CheckpointDamaged, match="its number of averaged steps is invalid"):
        checkpoints.load(build(AVERAGING), tmp_path)


def test_a_run_draws_writes_and_takes_along_both_curves_and_the_average(tmp_path):
    store = RunStore(tmp_path / "here", recorded=None)
    run = store.create(AVERAGING)
    assert execute(run).state == "finished"
    curves = run.curves()
    steps = curves.validation["step"].tolist()
    assert curves.averaged["step"].tolist() == steps
    assert curves.unseen is curves.averaged
    assert curves.tested("average") == "average"
    roles = {line["role"] for line in curve_lines(curves, scores_sequences=True)}
    assert {"validation", "whole", "average", "average_whole"} <= roles
    assert set(curves_table(curves)["split"]) == {
        "train",
        "validation",
        "validation-average",
        "test",
    }
    assert "validation of the averaged weights" in summary(figures(run))
    assert "average of the weights up to step 6" in summary(figures(run))
    names = [trace.name for trace in plots_of_run.curves(OpenedRun(run)).data]
    assert "averaged weights" in names
    again = import_run(io.BytesIO(bundle(run)), RunStore(tmp_path / "there", recorded=None))
    kept = [one.folder / "checkpoints" / "last" for one in (run, again)]
    here, there = build(AVERAGING), build(AVERAGING)
    for trainer, folder in zip((here, there), kept, strict=True):
        checkpoints.load(trainer, folder)
    assert_same(there.model.state_dict(), here.model.state_dict())
    assert_same(there.average.model.state_dict(), here.average.model.state_dict())
    assert there.average.n_updates == 6
    space: dict[str, object] = {"__name__": "model"}
    exec(source_code(AVERAGING.model, data_shape(AVERAGING)), space)
    own = space["load"](kept[0] / FILE)
    expected = here.average.model.state_dict()
    assert sorted(own) == sorted(weight_names(AVERAGING, list(expected)).values())
    for name, value in weight_names(AVERAGING, list(expected)).items():
        assert torch.equal(own[value], expected[name]), name


def test_an_average_is_counted_in_the_forecast_of_memory():
    with_it, without = of_run(AVERAGING, 1000), of_run(experiment(), 1000)
    assert with_it.weights - without.weights == 4000
    assert with_it.gradients == without.gradients

"""Training: the same seed gives the same curve, a stop is no loss, and everything can learn."""

import json
import math
from itertools import islice

import pytest
import torch

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.training import checkpoints
from tfm_core.training.events import Finished, Measured, SnapshotDue, Started, Step, to_record
from tfm_core.training.loop import build, seeds_of_step, train
from tfm_core.training.progress import TrainingDiverged

pytestmark = pytest.mark.quick

SMALL_MODEL = {"d_model": 16, "n_heads": 2, "d_ff": 16}
SMALL_TEXT = {"n_train": 64, "n_validation": 16, "n_test": 16}


def experiment(family="encoder-decoder", task="copy", /, **sections):
    values = default_sections(family, task)
    values["model"] |= {"d_model": 16} if family == "recurrent" else SMALL_MODEL
    sizes = {"n_validation": 50} if values["task"]["kind"] == "image" else SMALL_TEXT
    values["task"] |= {name: n for name, n in sizes.items() if name in values["task"]}
    values["training"] |= {"steps": 6, "batch_size": 8, "validate_every": 3, "snapshots": 4}
    for section, settings in sections.items():
        values[section] |= settings
    return Experiment.parse(values)


def records(trainer):
    """Events without clock and memory."""
    timeless = {"examples_per_second", "memory_bytes", "seconds"}
    for event in train(trainer):
        yield {key: value for key, value in to_record(event).items() if key not in timeless}


EXPERIMENTS = [
    experiment("encoder-decoder", "copy", model={"dropout": 0.2}),
    experiment("encoder-only", "sort"),
    experiment("decoder-only", "addition", training={"optimizer": "sgd"}),
    experiment("encoder-only", "sentiment", model={"pooling": "cls"}),
    experiment("encoder-only", "masked-words", training={"label_smoothing": 0.1}),
    experiment("recurrent", "copy", model={"dropout": 0.2, "n_layers": 2}),
    experiment("recurrent", "dates", model={"cell": "lstm", "attention": "general"}),
    experiment("decoder-only", "copy", model={"n_experts": 3, "activation": "swiglu"}),
    experiment("decoder-only", "grammar", model={"d_ff": 0}),
    experiment("vit", "mnist-5000", model={"dropout": 0.1}, task={"rotation": 5.0, "scale": 0.1}),
]
EXPERIMENTS.append(experiment("captioner", "captions", model={"dropout": 0.1}))
HALVED = experiment(training={"batch_warmup": 0.8})
IDS = [
    "encoder-decoder",
    "encoder-only",
    "decoder-only",
    "label",
    "blanks",
    "additive",
    "luong",
    "experts",
    "attention only",
    "vit",
    "captioner",
]


@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=IDS)
def test_same_seed_same_curve_and_another_seed_another(chosen):
    first = list(records(build(chosen)))
    torch.manual_seed(99)  # what the caller draws changes nothing
    assert list(records(build(chosen))) == first
    assert list(records(build(chosen.replace(seed=1)))) != first


def test_half_batches_are_the_whole_ones_cut_in_two():
    whole = build(experiment(training={"batch_size": 7}))
    halved = build(experiment(training={"batch_size": 7, "steps": 60, "batch_warmup": 0.4}))
    assert halved.batches.n_halved == 24
    read = [halved.batch_indices(step) for step in range(1, 31)]
    assert [len(indices) for indices in read] == 24 * [3] + 6 * [7]
    for number in range(12):  # past the end of an epoch of nine batches
        pair = torch.cat(read[2 * number : 2 * number + 2])
        assert torch.equal(pair, whole.batch_indices(number + 1)[:6])
    for number, indices in enumerate(read[24:], 13):
        assert torch.equal(indices, whole.batch_indices(number))


def test_epochs_speed_and_pace_count_what_was_read():
    steps = [
        event
        for event in train(build(experiment(training={"batch_warmup": 0.7})))
        if isinstance(event, Step)
    ]
    assert [event.epoch for event in steps] == [1 / 16, 2 / 16, 3 / 16, 4 / 16, 3 / 8, 4 / 8]
    assert all(event.examples_per_second > 0 for event in steps)
    """A step counts a tenth, those before it nine tenths."""
    trainer = build(experiment(training={"batch_warmup": 0.0, "validate_every": 100}))
    seconds = [2.0, 4.0, 1.0, 0.5, 3.0, 1.0]
    ticks = iter([tick for n, one in enumerate(seconds) for tick in (10.0 * n, 10.0 * n + one)])
    events = []
    for event in train(trainer):
        if isinstance(event, Measured):  # validation took its own time
            trainer.clock = lambda: next(ticks, 0.0)
        events.append(event)
    sizes, took = [trainer.batches.size_of(n) for n in range(1, 7)], None
    for event, one, size in zip(
        (one for one in events if isinstance(one, Step)), seconds, sizes, strict=True
    ):
        took = one / size if took is None else 0.9 * took + 0.1 * one / size
        assert event.examples_per_second == pytest.approx(1 / took)


@pytest.mark.parametrize("chosen", [*EXPERIMENTS, HALVED], ids=[*IDS, "halved"])
def test_going_on_from_a_checkpoint_gives_the_same_curve_bit_for_bit(chosen, tmp_path):
    whole, resumed = goes_on_with_the_same_curve(chosen, tmp_path)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name


def goes_on_with_the_same_curve(chosen, tmp_path):
    """Train whole, and stopped and resumed at step 4; return both trainers at their end."""
    whole, stopped, resumed = build(chosen), build(chosen), build(chosen)
    expected = list(records(whole))
    events = train(stopped)
    while not (isinstance(event := next(events), Step) and event.step == 4):
        pass
    checkpoints.save(stopped, tmp_path)
    events.close()
    checkpoints.load(resumed, tmp_path)
    again = list(records(resumed))
    after = [event for event in expected if event["step"] > 4]
    assert again[1:] == after
    return whole, resumed


def test_two_trainings_or_dropout_and_augmentation_do_not_touch_each_other():
    chosen = experiment(model={"dropout": 0.3})
    expected = list(records(build(chosen)))
    one, other = records(build(chosen)), records(build(chosen.replace(seed=5)))
    assert [event for event, _ in zip(one, other, strict=True)] == expected
    chosen = EXPERIMENTS[IDS.index("vit")]
    seeds = [seed for step in range(1, 50) for seed in seeds_of_step(chosen, step)]
    assert len(set(seeds)) == len(seeds)


def test_events_come_in_their_order_as_strict_json():
    kinds = [type(event) for event in train(build(experiment()))]
    assert kinds[:3] == [Started, SnapshotDue, Measured]
    assert kinds[-3:] == [Step, Measured, Finished]
    assert kinds.count(Step) == 6
    assert kinds.count(Measured) == 1 + 2 + 1
    names = {
        Started: "started",
        Step: "step",
        Measured: "measured",
        SnapshotDue: "snapshot",
        Finished: "finished",
    }
    for event in train(build(experiment())):
        record = json.loads(json.dumps(to_record(event)))
        assert record.pop("event") == names[type(event)]
        assert type(event)(**record) == event
    """Its gradient has no norm and it changes nothing; the scale halves, and training goes on."""
    trainer = build(experiment(training={"precision": "fp16"}))
    trainer.scaler = torch.amp.GradScaler("cpu", init_scale=1e30)
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    events = train(trainer)
    event = next(event for event in events if isinstance(event, Step))
    events.close()
    assert not math.isfinite(event.grad_norm)
    record = to_record(event)
    json.dumps(record, allow_nan=False)
    assert record["grad_norm"] is None
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, before[name])


def test_inverse_square_root_is_the_papers():
    config = experiment(
        training={"schedule": "inverse-sqrt", "steps": 1000, "warmup": 0.04, "learning_rate": 1.0}
    ).training
    for step in (1, 39, 40, 41, 1000):
        noam = min(step**-0.5, step * 40**-1.5)  # section 5.3, up to the constant
        assert config.rate(step) == pytest.approx(noam * 40**0.5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_floor_is_the_loss_of_perfect_predictions(smoothing):
    trainer = build(experiment(training={"label_smoothing": smoothing}))
    n = trainer.objective.n_classes
    targets = torch.arange(n)
    share = torch.full((n, n), smoothing / n) + torch.eye(n) * (1 - smoothing)
    perfect = torch.nn.functional.cross_entropy(
        share.clamp(min=1e-30).log(), targets, label_smoothing=smoothing
    )
    assert trainer.objective.loss_lower_bound() == pytest.approx(float(perfect), abs=1e-5)


def test_the_first_loss_is_near_guessing_and_no_number_ends_in_a_sentence():
    for chosen in EXPERIMENTS:
        started, _, measured = islice(train(build(chosen)), 3)
        assert abs(measured.loss - started.start_loss) < 1.0
        assert started.chance == pytest.approx(1 / build(chosen).objective.n_classes)
    wild = experiment(training={"learning_rate": 10.0, "optimizer": "sgd", "clip_norm": 0.0})
    trainer = build(wild)
    with torch.no_grad():
        trainer.model.output.weight.fill_(float("inf"))
    with pytest.raises(TrainingDiverged, match="at step 1: the learning rate 10 is probably too"):
        list(train(trainer))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_lower_precision_learns_too(precision):
    chosen = experiment(training={"precision": precision, "steps": 30})
    losses = [event.loss for event in train(build(chosen)) if isinstance(event, Step)]
    assert losses[-1] < losses[0]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=IDS)
def test_a_cuda_gpu_gives_nearly_the_curve_of_the_cpu(chosen):
    chosen = chosen.replace(model=chosen.model.replace(dropout=0.0).model_dump())
    curves = [
        [event.loss for event in train(build(chosen, device)) if isinstance(event, Step)]
        for device in ("cpu", "cuda:0")
    ]
    assert curves[0] == pytest.approx(curves[1], rel=0.02)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_training_goes_to_a_cuda_gpu_and_back(optimizer, tmp_path):
    chosen = experiment(training={"optimizer": optimizer, "ema_decay": 0.9, "steps": 9})
    losses = []
    for device, until in (("cpu", 3), ("cuda:0", 6), ("cpu", 9)):
        trainer = build(chosen, device)
        if losses:
            checkpoints.load(trainer, tmp_path)
        steps = (event for event in train(trainer) if isinstance(event, Step))
        losses += [event.loss for event in islice(steps, until - trainer.step)]
        checkpoints.save(trainer, tmp_path)
    whole = [event.loss for event in train(build(chosen)) if isinstance(event, Step)]
    assert losses == pytest.approx(whole, rel=0.02)

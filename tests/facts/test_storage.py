"""What a run keeps on the disk, and the batches that it reads."""

import numpy as np
import pytest

from tests.inspect.test_differences import changed
from tests.training.test_loop import EXPERIMENTS
from tfm_core.choices.config import Experiment
from tfm_core.choices.config.training import WEIGHT_SETS
from tfm_core.choices.presets import PRESETS
from tfm_core.facts import storage
from tfm_core.facts.batches import Batches
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.settings.decided import LOCAL_LIMITS

pytestmark = pytest.mark.quick


MAX = LOCAL_LIMITS.max_attention

RUNS = [run for run in RunStore(RECORDED.parent, recorded=RECORDED).list() if run.snapshot_steps()]

PATCH_1 = Experiment.parse(
    {
        "model": {"family": "vit", "patch_size": 1, "d_model": 16, "n_heads": 16, "n_layers": 2},
        "task": {"kind": "image", "name": "mnist-5000"},
    }
)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_a_snapshot_holds_what_is_counted_and_takes_about_the_forecast(run) -> None:
    """A recording keeps the attention of fewer examples, and embeddings in some snapshots only."""
    counted = storage.attention_numbers(run.experiment)
    for step in run.snapshot_steps():
        maps = run.snapshot(step).attention.values()
        held = sum(one[0].size for one in maps)
        assert counted / 2 < held <= counted
        assert all(len(one) <= storage.n_examples(run.experiment) for one in maps)
    snapshots = [run.snapshot(step) for step in run.snapshot_steps()]
    embedded = sum(table.nbytes for table in snapshots[-1].embeddings.values())
    taken = sum(path.stat().st_size for path in (run.folder / "snapshots").iterdir())
    taken += embedded * sum(not snapshot.embeddings for snapshot in snapshots)
    most = len(run.probe().attended) * storage.attention_numbers(run.experiment)
    assert storage.snapshots_bytes(run.experiment, most) == pytest.approx(taken, rel=0.35)


def test_attention_of_presets_is_kept_and_a_whole_run_has_two_checkpoints() -> None:
    for name, preset in PRESETS.items():
        examples = storage.examples_kept(preset.experiment, MAX)
        assert examples == storage.n_examples(preset.experiment), name
    assert storage.attention_numbers(PATCH_1) == 2 * 16 * 784**2
    assert storage.examples_kept(PATCH_1, MAX) == 1
    assert storage.examples_kept(PATCH_1, MAX // 2) == 0
    experiment = PRESETS["translate"].experiment
    snapshots = storage.snapshots_bytes(experiment, MAX)
    assert storage.run_bytes(experiment, 1_000, MAX, 0) - snapshots == 2 * 3 * 4 * 1_000
    sets = storage.run_bytes(experiment, 1_000, MAX, 10**6) - snapshots - 2 * 3 * 4 * 1_000
    assert sets == WEIGHT_SETS * 2 * 1_000


def test_a_snapshot_holds_the_share_of_every_expert_from_two_on() -> None:
    experiment = PRESETS["translate"].experiment
    taken = {}
    for n_experts in (1, 2, 4):
        model = {**experiment.model.model_dump(), "n_experts": n_experts}
        taken[n_experts] = storage.snapshots_bytes(experiment.replace(model=model), MAX)
    assert taken[2] > taken[1]
    assert taken[4] - taken[1] == 2 * (taken[2] - taken[1])


@pytest.mark.parametrize("most", [0, 1, 1_000, 10_000, MAX])
def test_what_is_kept_is_never_more_than_may_be(most: int) -> None:
    for experiment in EXPERIMENTS:
        n = storage.examples_kept(experiment, most)
        assert n * storage.attention_numbers(experiment) <= most
        assert 0 <= n <= storage.n_examples(experiment)


def test_the_first_steps_learn_from_half_a_batch_of_what_there_is() -> None:
    batches = Batches.of_experiment(
        changed(training__steps=10, training__batch_size=32, training__batch_warmup=0.4)
    )
    assert [batches.size_of(step) for step in range(1, 11)] == [16] * 4 + [32] * 6
    assert [batches.examples(steps) for steps in (0, 3, 4, 10)] == [0, 48, 64, 256]
    assert [batches.whole(steps) for steps in (0, 3, 4, 10)] == [0, 1.5, 2, 8]
    assert Batches.of_experiment(changed(task__n_train=8)).size == 8
    assert Batches.of_experiment(PRESETS["vit-digits"].experiment).size == 128
    one = Batches.of_experiment(changed(training__batch_size=1, training__batch_warmup=0.5))
    assert (one.size, one.n_halved) == (1, 0)
    training = changed(training__steps=20, training__batch_warmup=0.7).training
    for steps in (21, 30, 1000):
        assert training.further(steps).n_halved == training.n_halved == 14
        assert training.further(steps, stays_low=True).n_halved == 14


@pytest.mark.parametrize(("size", "n_halved"), [(32, 4), (7, 6), (1, 0), (8, 0)])
def test_examples_are_the_sum_of_what_each_step_reads(size: int, n_halved: int) -> None:
    batches = Batches(size, n_halved)
    read = np.cumsum([batches.size_of(step) for step in range(1, 13)])
    assert [batches.examples(steps) for steps in range(1, 13)] == read.tolist()
    np.testing.assert_array_equal(batches.examples(np.arange(1.0, 13.0)), read)


@pytest.mark.parametrize(
    ("share", "steps", "n"), [(0.5, 9, 4), (0.3, 11, 4), (1, 10, 10), (0, 9, 0)]
)
def test_half_batches_come_in_pairs(share: float, steps: int, n: int) -> None:
    found = changed(training__steps=steps, training__batch_warmup=share)
    assert found.training.n_halved == n

"""What a run keeps on the disk is what the algebra says; what is kept of attention is bounded."""

import pytest

from tests.training.test_loop import EXPERIMENTS
from tfm_core.choices.config import Experiment
from tfm_core.choices.config.training import WEIGHT_SETS
from tfm_core.choices.presets import PRESETS
from tfm_core.facts import storage
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.settings.fixed import LOCAL

pytestmark = pytest.mark.quick

MAX = LOCAL.max_attention
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

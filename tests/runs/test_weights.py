"""The weights that a small run keeps over its training: bounded, checked, and taken along."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.limits import limited
from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core.choices.config.training import WEIGHT_SETS
from tfm_core.facts.storage import weights_bytes
from tfm_core.runs.process.execute import execute
from tfm_core.runs.record import weights

pytestmark = pytest.mark.quick


def test_a_small_run_keeps_its_first_and_last_weights_in_half_precision(whole):
    assert whole.weight_steps() == [0, 7]
    last = load_file(whole.folder / "checkpoints" / "last" / "checkpoint.safetensors")
    kept = whole.weights(7)
    assert {f"model/{name}" for name in kept} == {n for n in last if n.startswith("model/")}
    for name, value in kept.items():
        assert value.dtype == np.float16
        np.testing.assert_allclose(value, last[f"model/{name}"], rtol=1e-3, atol=1e-6)


def test_a_run_keeps_none_where_all_would_take_more_than_may_be(store, monkeypatch):
    assert weights_bytes(1_000, WEIGHT_SETS * 2_000) == WEIGHT_SETS * 2_000
    assert weights_bytes(1_000, WEIGHT_SETS * 2_000 - 1) == 0
    limited(monkeypatch, max_weights=0)
    run = store.create(tiny())
    execute(run)
    assert run.weight_steps() == []
    assert not (run.folder / "weights").exists()


def test_those_from_beyond_the_checkpoint_are_kept_again(store):
    run = store.create(tiny())
    execute(run, *stopping_at(2, run))
    beyond = weights.weights_path(run.folder, 5)
    beyond.write_bytes(weights.weights_path(run.folder, 0).read_bytes())
    execute(run)
    assert run.weight_steps() == [0, 7]


def test_a_copy_that_trains_further_takes_them_along(whole, store):
    assert store.fork(whole.id, steps=9).weight_steps() == [0, 7]


def _cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def _of_another_step(path):
    save_file(load_file(path), path, {"step": "5"})


def _no_numbers(path):
    save_file({"output.weight": np.array([np.inf], np.float16)}, path, {"step": "7"})


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.unlink(), "No weights of step 7"),
        (lambda path: path.write_bytes(b"nothing"), "are damaged"),
        (_cut, "are damaged"),
        (_of_another_step, "belongs to another step"),
        (_no_numbers, "are not finite numbers"),
    ],
    ids=["missing", "garbled", "cut", "another-step", "infinite"],
)
def test_what_is_damaged_is_a_sentence(whole, damage, why):
    damage(weights.weights_path(whole.folder, 7))
    with pytest.raises(ValueError, match=why):
        whole.weights(7)


def test_a_link_is_not_followed(whole, tmp_path):
    path = weights.weights_path(whole.folder, 7)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert whole.weight_steps() == [0]
    with pytest.raises(ValueError, match="not a plain file"):
        whole.weights(7)

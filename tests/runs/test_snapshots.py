"""Snapshots, probes and weights come back as they were written, or as a sentence."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.limits import limited
from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core.choices.config.training import WEIGHT_SETS
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.storage import weights_bytes
from tfm_core.runs import Snapshot, snapshots
from tfm_core.runs.process.execute import execute
from tfm_core.runs.snapshots import read_snapshot, snapshot_path, write_probe, write_snapshot

pytestmark = pytest.mark.quick


RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.random(shape).astype(np.float16)


CROSS = "decoder.layers.0.cross_attention"


def text_snapshot(step=5):
    return Snapshot(
        step=step,
        attention={CROSS: drawn(2, 2, 5, 7)},
        masks={CROSS: np.ones((1, 1, 1, 7), bool)},
        ids=RNG.integers(0, 11, (2, 5)).astype(np.int32),
        confidence=drawn(2, 5),
        tokens=[["나는", "간다"], []],
        texts=["나는 간다", ""],
        positions={"encoder.positions.table": drawn(7, 8)},
        embeddings={"src_embedding": drawn(13, 8)},
    )


def test_snapshots_of_text_and_pictures_come_back(tmp_path):
    written = text_snapshot()
    loaded = read_snapshot(write_snapshot(tmp_path, written))

    assert loaded.step == 5
    assert loaded.tokens == written.tokens
    assert loaded.texts == written.texts
    assert loaded.probabilities is None
    for name in ("ids", "confidence"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(written, name))
        assert getattr(loaded, name).dtype == getattr(written, name).dtype
    for name in ("attention", "masks", "positions", "embeddings"):
        found_part, written_part = getattr(loaded, name), getattr(written, name)
        assert found_part.keys() == written_part.keys()
        for key, value in written_part.items():
            np.testing.assert_array_equal(found_part[key], value)
    probabilities = RNG.random((3, 10))
    loaded = read_snapshot(write_snapshot(tmp_path, Snapshot(0, probabilities=probabilities)))
    assert loaded.probabilities.dtype == np.float16
    np.testing.assert_allclose(loaded.probabilities, probabilities, atol=1e-3)
    assert loaded.texts is None


def test_steps_are_listed_in_order_without_what_is_damaged(store):
    run = store.create(tiny())
    for step in (13, 0, 2, 7, 3):
        write_snapshot(run.folder, text_snapshot(step))
    torn = snapshot_path(run.folder, 7)
    torn.write_bytes(torn.read_bytes()[:-1])
    snapshot_path(run.folder, 3).write_bytes(b"")
    (run.folder / "snapshots" / "notes.txt").write_text("?")

    assert run.snapshot_steps() == [0, 2, 13]
    assert run.snapshot(13).step == 13
    with pytest.raises(ValueError, match=r"00000007.safetensors is damaged"):
        run.snapshot(7)
    with pytest.raises(ValueError, match="There is no snapshot of step 5"):
        run.snapshot(5)


def test_probes_of_pictures_and_of_text_come_back(store):
    run = store.create(PRESETS["vit-digits"].experiment)
    images = RNG.integers(0, 256, (2, 1, 28, 28)).astype(np.uint8)
    write_probe(
        run.folder, {"kind": "image", "items": [{"label": 3}, {"label": 1}], "images": images}
    )
    probe = run.probe()
    assert probe.kind == "image"
    assert probe.items == [{"label": 3}, {"label": 1}]
    np.testing.assert_array_equal(probe.images, images)

    (run.folder / "probe.safetensors").write_bytes(b"torn")
    with pytest.raises(ValueError, match="its pictures cannot be read"):
        run.probe()
    run = store.create(tiny())
    with pytest.raises(ValueError, match="no probe yet"):
        run.probe()
    item = {"src": ["a"], "tgt": ["b"], "alignment": [[0]], "src_text": "a", "tgt_text": "b"}
    write_probe(run.folder, {"kind": "text", "items": [item]})
    assert run.probe().items == [item]
    assert run.probe().images is None

    (run.folder / "probe.json").write_text("[")
    with pytest.raises(ValueError, match="probe of this run is damaged"):
        run.probe()


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
    beyond = snapshots.weights_path(run.folder, 5)
    beyond.write_bytes(snapshots.weights_path(run.folder, 0).read_bytes())
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
        (_no_numbers, "aren't finite numbers"),
    ],
    ids=["missing", "garbled", "cut", "another-step", "infinite"],
)
def test_what_is_damaged_is_a_sentence(whole, damage, why):
    damage(snapshots.weights_path(whole.folder, 7))
    with pytest.raises(ValueError, match=why):
        whole.weights(7)


def test_a_link_is_not_followed(whole, tmp_path):
    path = snapshots.weights_path(whole.folder, 7)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert whole.weight_steps() == [0]
    with pytest.raises(ValueError, match="isn't a regular file"):
        whole.weights(7)

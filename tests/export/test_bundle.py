"""The zip of a run works without the app: its model answers."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file

from tests.export.exported import members, unpacked, untrained
from tests.runs.waiting import tiny
from tfm_core.export import layout
from tfm_core.export.bundle import bundle, estimate, file_name
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


def test_the_model_of_the_zip_answers_with_its_weights_and_torch_alone(store, tmp_path):
    run = store.get("recorded-korean")
    folder = unpacked(bundle(run), tmp_path / "taken")
    text = "the cat ate an apple"
    command = [sys.executable, "-I", layout.MODEL, "--checkpoint", layout.WEIGHTS, text]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == look_at_text(run, text).answer_text


def test_the_metrics_are_the_curves(store):
    run = store.get("recorded-korean")
    table = pd.read_csv(io.BytesIO(members(bundle(run))[layout.METRICS]))
    curves = run.curves()
    for split, series in (
        ("train", curves.steps),
        ("validation", curves.validation),
        ("test", curves.test),
    ):
        rows = table[table["split"] == split]
        assert rows["step"].tolist() == series["step"].tolist()
        np.testing.assert_allclose(rows["loss"], series["loss"], rtol=1e-6)


def test_what_is_in_the_zip_says_who_made_it(store):
    run = store.get("recorded-korean")
    parts = members(bundle(run))
    facts = json.loads(parts[layout.FACTS])
    assert facts["seed"] == run.experiment.seed
    assert {"tfm_core", "torch", "python"} <= facts["versions"].keys()
    assert "owner" not in facts
    for name in set(parts) - {layout.README}:
        top = f"{name.split('/')[0]}/" if "/" in name else name
        assert top in parts[layout.README].decode()
    assert not [name for name in parts if name.endswith((".pt", ".pkl", ".pth"))]


def test_the_same_run_makes_the_same_zip_and_about_as_large_as_it_says(store):
    run = store.get("recorded-digits")
    one = bundle(run)
    assert one == bundle(run)
    assert 0.5 < estimate(run) / len(one) < 2
    assert file_name(run) == "digits-recorded-recorded.zip"


def test_progress_is_said_from_nothing_to_all(store):
    heard = []
    bundle(store.get("recorded-korean"), lambda share, words: heard.append((share, words)))
    shares = [share for share, _words in heard]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert all(words for _share, words in heard)


def test_a_run_without_a_checkpoint_says_that_it_has_no_weights(store, tmp_path):
    run = store.create(tiny(), state="stopped")
    write_status(run.folder, Status("stopped", step=0, total_steps=7))
    folder = unpacked(bundle(run), tmp_path / "taken")
    assert not (folder / layout.WEIGHTS).exists()
    assert "no weights here" in (folder / layout.README).read_text()


def test_weights_that_are_no_numbers_stay_here(store):
    run = untrained(store, tiny())
    path = run.folder / "checkpoints" / "last" / "checkpoint.safetensors"
    broken = {name: value * np.float32(np.nan) for name, value in load_file(path).items()}
    save_file(broken, path, {"trainer": "{}"})
    parts = members(bundle(run))
    assert layout.WEIGHTS not in parts
    assert "are not finite numbers" in " ".join(parts[layout.README].decode().split())


def test_a_damaged_run_is_a_sentence(store):
    run = store.create(tiny())
    (run.folder / "experiment.json").write_text("{")
    with pytest.raises(StudentError, match=r"experiment\.json is not valid"):
        bundle(store.get(run.id))
    other = untrained(store, tiny())
    (other.folder / "checkpoints" / "last" / "checkpoint.safetensors").write_bytes(b"weights")
    with pytest.raises(StudentError, match="last checkpoint is damaged"):
        bundle(other)

"""The command line trains into run folders that the app shows."""

import io
import json
import os
import signal
import stat
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages import publish
from tests.runs.waiting import DEADLINE_SECONDS, wait_until
from tfm_core.choices.config import from_query
from tfm_core.cli import main, start
from tfm_core.runs import RunStore

TINY = [
    *("--set", "task.name=copy", "--set", "task.size=3", "--set", "task.n_train=40"),
    *("--set", "task.n_validation=11", "--set", "task.n_test=13"),
    *("--set", "model.d_model=8", "--set", "model.n_heads=2", "--set", "training.batch_size=5"),
]


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path / "data"))
    return RunStore(tmp_path / "runs", recorded=None)


def test_a_trained_run_is_in_the_store_with_the_figures_that_were_printed(runs, capsys):
    code = main(
        ["train", *TINY, "--set", "training.steps=7", "--seed", "5", "--json", "--name", "N"]
    )

    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    (run,) = runs.list()
    assert code == 0
    assert figures["id"] == run.id
    assert figures["state"] == run.status.state == "finished"
    assert figures["test"]["step"] == 7
    assert figures["n_parameters"] == run.curves().started["n_parameters"]
    assert run.experiment.seed == 5
    assert run.experiment.model.d_model == 8
    assert run.meta.name == "N"


def test_a_preset_can_be_changed(runs, capsys):
    changed = ["--set", "training.steps=2", "--set", "training.validate_every=3"]
    assert main(["train", "--preset", "copy", *TINY, *changed]) == 0
    (run,) = runs.list()
    assert run.meta.preset == "copy"
    assert run.experiment.training.steps == 2
    out, error = capsys.readouterr()
    assert "training.validate_every: More than all 2 steps" in error
    assert "validation: loss" in out
    assert run.id in out


def test_the_command_that_starts_the_app_has_a_short_help_of_its_own(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["watch-a-transformer", "--server.port", "7", "--help"])
    with pytest.raises(SystemExit, match="0"):
        start.main()
    said = capsys.readouterr().out
    assert "Start the app" in said
    assert len(said.splitlines()) < 15


def test_quiet_says_nothing(capfd):
    assert main(["train", *TINY, "--set", "training.steps=1", "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train"], "Choose what to train"),
        (["train", "--preset", "nothing"], "There is no preset 'nothing'. Choose one of"),
        (["train", "--set", "d_model"], "--set takes SETTING=VALUE"),
        (["train", "--set", "model.colour=red"], "Unknown setting: model.colour."),
        (["train", "--set", "model.d_mdel=8"], "Did you mean model.d_model?"),
        (["train", "--set", "modle.d_model=8"], "Did you mean model.d_model?"),
        (["train", "--set", "training.step=8"], "Did you mean training.steps?"),
        (["train", "--set", "task.n_trian=8"], "Did you mean task.n_train?"),
        (["train", "--set", "sead=8"], "Did you mean seed?"),
        (["train", "--set", "model.d_model=-3"], "d_model is '-3'; it must be at least"),
        (["train", *TINY, "--device", "cuda:99"], "cuda:99 is not available"),
        (["train", *TINY, "--device", "abacus"], "Unknown device 'abacus'"),
        (["train", *TINY, "--threads", "few"], "--threads is 'few'; use a number"),
        (["train", *TINY, "--name", " "], "A run needs a name"),
        (["resume", "../../etc"], "A run id has"),
        (["resume", "unknown-run"], "There is no run unknown-run"),
    ],
)
def test_wrong_input_is_one_sentence_and_code_two(runs, capsys, arguments, sentence):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert runs.list() == []


def test_a_finished_run_is_not_resumed(runs, capsys):
    main(["train", *TINY, "--set", "training.steps=1", "--quiet"])
    (run,) = runs.list()
    assert main(["resume", run.id]) == 2
    assert "is finished. There is nothing to resume" in capsys.readouterr().err


def test_a_failed_run_is_code_one(runs, capsys):
    wild = ["training.learning_rate=10", "training.optimizer=sgd", "training.clip_norm=0"]
    changes = [part for change in wild for part in ("--set", change)]
    assert main(["train", *TINY, *changes, "--set", "training.warmup=0", "--json"]) == 1
    out, error = capsys.readouterr()
    assert "is probably too high" in error
    assert json.loads(out)["state"] == "failed"


def test_ctrl_c_keeps_a_checkpoint_and_says_how_to_go_on(runs):
    command = [sys.executable, "-m", "tfm_core", "train", *TINY, "--set", "training.steps=1000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        (run,) = wait_until(runs.list, "the run is there")
        wait_until(lambda: run.status.step > 2, "it trains")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        process.kill()

    assert process.returncode == 130
    assert f"python -m tfm_core resume {run.id}" in error
    assert "Traceback" not in error
    assert run.status.state == "stopped"
    assert run.has_checkpoint


def test_runs_presets_and_devices_are_listed(runs, capsys):
    main(["train", *TINY, "--set", "training.steps=1", "--quiet"])
    (run,) = runs.list()
    assert main(["runs"]) == 0
    assert f"{run.id:<18} finished" in capsys.readouterr().out
    main(["runs", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["id"] == run.id
    assert main(["presets"]) == 0
    assert "copy" in capsys.readouterr().out
    assert main(["devices"]) == 0
    assert "cpu" in capsys.readouterr().out
    assert main(["devices", "--json"]) == 0
    assert {device["name"] for device in json.loads(capsys.readouterr().out)} >= {"cpu", "mps"}


def test_a_damaged_run_says_so_in_the_list_and_is_not_resumed(runs, capsys):
    store = RunStore()
    run = store.create(from_query({"task.name": "copy"}), state="stopped")
    (run.folder / "experiment.json").write_text('{"seed": ' + "1" * 5_000 + "}")
    sentence = "This run is damaged: experiment.json is not valid."
    assert main(["runs"]) == 0
    assert sentence in capsys.readouterr().out
    assert main(["resume", run.id]) == 2
    assert capsys.readouterr().err.startswith(sentence)


def test_a_run_is_exported_and_imported_as_it_was(runs, capsys, tmp_path, monkeypatch):
    assert main(["train", *TINY, "--set", "training.steps=2", "--name", "Mine", "--quiet"]) == 0
    (run,) = runs.list()
    file = tmp_path / "taken.zip"
    assert main(["export", run.id, "--out", str(file)]) == 0
    assert capsys.readouterr().out.strip() == str(file)
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "elsewhere"))
    assert main(["import", str(file)]) == 0
    again = RunStore(tmp_path / "elsewhere", recorded=None).get(capsys.readouterr().out.strip())
    assert again.experiment == run.experiment
    assert again.meta.name == "Mine"
    assert again.has_checkpoint
    assert main(["export", again.id, "--out", str(tmp_path), "--tensorboard"]) == 0
    assert capsys.readouterr().out.strip().endswith("-tensorboard.zip")


@pytest.mark.parametrize(
    "out", ["missing/folder/x.zip", "file/x.zip", f"{'x' * 300}.zip", "/dev/full"]
)
def test_a_place_that_cannot_be_written_is_named(out, runs, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    if out == "/dev/full" and not stat.S_ISCHR(os.stat(out).st_mode):
        pytest.skip("this machine has no such device")
    main(["train", *TINY, "--set", "training.steps=1", "--quiet"])
    (run,) = runs.list()
    for command in (
        ["export", run.id],
        ["lesson", "scorm", "carry-the-one", "--address", "https://a.b"],
    ):
        assert main([*command, "--out", out]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"Can't write {out}: ")
        assert error.count("\n") == 1
    assert publish.main([run.id, "--to", out]) == 2
    assert capsys.readouterr().err.startswith(f"Can't write {out}: ")
    assert (tmp_path / "file").read_text() == "mine"
    assert out != "/dev/full" or stat.S_ISCHR(os.stat(out).st_mode)


def test_an_export_goes_through_a_link_and_into_a_pipe(runs, capsys, tmp_path):
    main(["train", *TINY, "--set", "training.steps=1", "--quiet"])
    (run,) = runs.list()
    (tmp_path / "disk.zip").write_bytes(b"old")
    (tmp_path / "link.zip").symlink_to(tmp_path / "disk.zip")
    assert main(["export", run.id, "--out", str(tmp_path / "link.zip")]) == 0
    assert (tmp_path / "link.zip").is_symlink()
    assert zipfile.is_zipfile(tmp_path / "disk.zip")
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        read = pool.submit((tmp_path / "pipe").read_bytes)
        assert main(["export", run.id, "--out", str(tmp_path / "pipe")]) == 0
        assert zipfile.is_zipfile(io.BytesIO(read.result()))


def test_a_path_that_is_too_long_for_the_disk_is_no_folder_of_runs(runs, capsys):
    for arguments in (["open", "a" * 5_000], ["import", "a" * 5_000], ["import", ""]):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert "of runs" not in error
        assert error.count("\n") == 1


def test_a_file_that_is_no_run_is_one_sentence(runs, capsys, tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK")
    assert main(["import", str(tmp_path / "a.zip")]) == 2
    assert "is not a readable zip" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "b.zip")]) == 2
    assert "is not a file." in capsys.readouterr().err


def test_a_pipe_that_knows_few_characters_gets_the_others_as_question_marks():
    told = subprocess.run(
        [sys.executable, "-m", "tfm_core", "presets"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"?" in told.stdout

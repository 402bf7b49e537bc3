"""The wheel holds the whole app: installed alone, one command starts it anywhere."""

import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfm_core.recorded.build import RECORDINGS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment with the wheel and the packages it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*pip, *build], check=True)
    environment = folder / "environment"
    venv.create(environment, symlinks=os.name == "posix")
    scripts = Path(sysconfig.get_path("scripts", "venv", vars={"base": str(environment)}))
    python = scripts / Path(sys.executable).name
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    site = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(environment)}))
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))
    return scripts


@pytest.fixture
def server(commands: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [str(commands / "watch-a-transformer"), "--server.port", str(port)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    yield process, f"http://localhost:{port}"
    process.terminate()
    process.communicate()


def test_command_of_the_wheel_starts_the_app(server: tuple[subprocess.Popen[str], str]) -> None:
    process, address = server
    assert process.stdout is not None
    assert f"Watch a Transformer learn: {address}" in process.stdout.readline()
    while process.poll() is None:
        try:
            health = json.load(urllib.request.urlopen(f"{address}/health"))
        except urllib.error.URLError:  # the address is printed just before it can be reached
            time.sleep(0.1)
            continue
        break
    assert health["ok"]
    assert b"<title>" in urllib.request.urlopen(address).read()


def test_wheel_reads_its_own_files(commands: Path, tmp_path: Path) -> None:
    """A training of a preset needs templates, texts and embedded digits of the wheel."""
    python = commands / Path(sys.executable).name
    train = ["train", "--preset", "vit-digits", "--set", "training.steps=2", "--quiet"]
    code = "import tfm_core, importlib.util as u; print(tfm_core.__file__, u.find_spec('pages'))"
    where = subprocess.run(
        [python, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert str(commands.parent) in where.stdout
    assert where.stdout.endswith(" None\n")  # the README says what needs a checkout
    assert Path(where.stdout.split()[0]).with_name("py.typed").exists()
    subprocess.run([python, "-m", "tfm_core", *train], cwd=tmp_path, check=True)
    assert list((tmp_path / "runs").glob("*/experiment.json"))


def test_wheel_brings_the_recorded_runs_and_no_other(commands: Path, tmp_path: Path) -> None:
    """What pip compiled while it installed is no run."""
    python = commands / Path(sys.executable).name
    listed = subprocess.run(
        [python, "-m", "tfm_core", "runs", "--json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    recorded = [run_id for run_id, one in RECORDINGS.items() if not one.is_lesson]
    assert sorted(run["id"] for run in json.loads(listed.stdout)) == sorted(recorded)
    assert not any(run["problem"] for run in json.loads(listed.stdout))

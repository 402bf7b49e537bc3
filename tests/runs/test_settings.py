"""What a host says in the environment: read in one place, and refused in a sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tfm_core.runs import settings
from tfm_core.runs.settings import VARIABLES, Settings, size

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]
BAD = {
    "TFM_HOSTS": "http://a.org",
    "TFM_RUNS_DIR": __file__,
    "TFM_MAX_DISK": "twenty",
    "TFM_PUBLIC": "yes please",
    "TFM_HOST_KEY": "short",
    "TFM_LESSONS_KEY": "short",
    "TFM_CLUSTER_PYTHON": "python '",
    "TFM_WARM_DEVICE": "gpu 1",
}


def test_nothing_said_gives_the_defaults() -> None:
    assert settings.read({}) == Settings()
    assert settings.read({"TFM_MAX_STEPS": " "}) == Settings()


def test_every_field_has_its_variable_and_none_has_two() -> None:
    assert list(Settings.model_fields) == [variable.field for variable in VARIABLES]
    assert len({variable.name for variable in VARIABLES}) == len(VARIABLES)


def test_a_bad_value_is_one_sentence_that_names_the_variable() -> None:
    for variable in VARIABLES:
        for bad in (BAD.get(variable.name, "abc"), BAD.get(variable.name, "-1")):
            with pytest.raises(ValueError, match=rf"^(\S+ of )?{variable.name} .*\.$") as refused:
                settings.checked({variable.name: bad})
            assert "\n" not in str(refused.value)


def test_a_key_that_is_refused_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="5 characters") as refused:
        settings.read({"TFM_HOST_KEY": "short"})
    assert "short" not in str(refused.value)


def test_zero_is_kept_as_zero_and_only_shows_where_it_says_so() -> None:
    for variable in (one for one in VARIABLES if one.zero):
        said = settings.read({variable.name: "0"})
        assert getattr(said, variable.field) == 0
        assert said.only_shows == variable.zero.startswith("only shows")


def test_a_public_server_has_limits_unless_they_are_said() -> None:
    public = settings.read({"TFM_PUBLIC": "1", "TFM_MAX_STEPS": "7"})
    assert public.public
    assert public.max_steps == 7
    assert not public.open
    assert settings.read({"TFM_PUBLIC": "1", "TFM_OPEN": "1"}).open
    assert None not in (public.max_parameters, public.max_seconds, public.max_disk, public.max_runs)


def test_sizes() -> None:
    for text, expected in [
        ("12", 12),
        ("12B", 12),
        ("500MB", 500_000_000),
        ("20 GB", 20_000_000_000),
        ("1.5tb", 1_500_000_000_000),
        ("2GiB", 2 * 2**30),
        ("3k", 3000),
        ("0", 0),
    ]:
        assert size(text) == expected


def test_frame_ancestors_say_nothing_else() -> None:
    for text in [
        "a; script-src *",
        "'self', *",
        "https://a.org\nX: y",
        "javascript:",
        "'unsafe-inline'",
    ]:
        with pytest.raises(ValueError, match="TFM_FRAME_ANCESTORS is"):
            settings.read({"TFM_FRAME_ANCESTORS": text})


def test_hosts_are_names_and_nothing_else() -> None:
    for text in ["http://a.org", "a.org:80", "*a.org", "a..org", "a/b", "a.*"]:
        with pytest.raises(ValueError, match="TFM_HOSTS is"):
            settings.read({"TFM_HOSTS": text})


def test_hosts_are_read() -> None:
    said = settings.read({"TFM_HOSTS": "App.example.org, *.example.com  *"})
    assert said.hosts == ("app.example.org", "*.example.com", "*")


def test_frame_ancestors_are_read() -> None:
    text = "'self' https://example.org:8443  https://*.example.com"
    said = settings.read({"TFM_FRAME_ANCESTORS": text})
    assert said.frame_ancestors == " ".join(text.split())


def test_a_folder_of_runs_may_be_made_later(tmp_path: Path) -> None:
    assert settings.read({"TFM_RUNS_DIR": str(tmp_path / "a" / "b")}).runs_dir == tmp_path / "a/b"


def test_the_list_of_settings_is_the_one_that_its_command_writes() -> None:
    command = [sys.executable, "-m", "tfm_core.runs.settings.page"]
    env = os.environ | {"PYTHONIOENCODING": "utf-8"}
    made = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=True)
    listed = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert made.stdout.decode().splitlines() == listed.splitlines()
    rows = dict(re.findall(r"^\| `(TFM_\w+)` (\|.*)$", listed, re.MULTILINE))
    for variable in VARIABLES:
        cells = [variable.meaning, variable.default, variable.zero or "–"]
        assert rows[variable.name] == f"| {' | '.join(cells)} |"


def test_settings_made_in_code_ignore_the_environment(monkeypatch) -> None:
    monkeypatch.setenv("TFM_MAX_QUEUED", "3")
    assert Settings().max_queued == 20
    assert settings.read().max_queued == 3
    assert settings.read({"tfm_max_queued": "4"}).max_queued == 20


def test_a_folder_is_found_from_where_the_process_is(monkeypatch, tmp_path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert settings.read({"TFM_RUNS_DIR": "runs"}).runs_dir == Path.cwd() / "runs"


@pytest.mark.parametrize("command", ["app", "cli"])
def test_a_bad_value_ends_the_start_in_its_sentence(command: str) -> None:
    start = {
        "app": [sys.executable, "-c", "import app"],
        "cli": [sys.executable, "-m", "tfm_core", "presets"],
    }[command]
    ended = subprocess.run(
        start,
        cwd=ROOT,
        env={"PATH": "", "TFM_MAX_RUNNING": "abc"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2
    assert ended.stderr == ("TFM_MAX_RUNNING is 'abc'; use a whole number, 0 for none.\n")

"""What a host says in the environment: read in one place, and refused in a sentence."""

import re
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import pytest

from tfm_core import settings
from tfm_core.settings import VARIABLES, Settings, size
from tfm_core.settings.decided import PUBLIC, PUBLIC_LIMITS

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]
BAD = {
    "TFM_HOSTS": "http://a.org",
    "TFM_RUNS_DIR": __file__,
    "TFM_MAX_DISK": "twenty",
    "TFM_PUBLIC": "yes please",
    "TFM_RAY_ADDRESS": "ray://head:10001",
}


def test_nothing_said_gives_defaults_and_bad_values_one_sentence() -> None:
    assert settings.read({}) == Settings()
    assert settings.read({"TFM_MAX_SECONDS": " "}) == Settings()
    for name in VARIABLES:
        for bad in (BAD.get(name, "abc"), BAD.get(name, "-1")):
            with pytest.raises(ValueError, match=rf"^(\S+ of )?{name} .*\.$") as refused:
                settings.checked({name: bad})
            assert "\n" not in str(refused.value)
    for name in ("TFM_MAX_RUNNING", "TFM_MAX_SECONDS", "TFM_MAX_DISK"):
        said = settings.read({name: "0"})
        assert getattr(said, VARIABLES[name]) == 0
        assert said.only_shows
    public = settings.read({"TFM_PUBLIC": "1", "TFM_MAX_SECONDS": "7"})
    assert public.public
    assert public.max_seconds == 7
    assert None not in (public.max_disk, *astuple(public.limits))


def test_sizes_hosts_and_frame_ancestors_are_read_and_say_nothing_else() -> None:
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
    said = settings.read({"TFM_HOSTS": "App.example.org, *.example.com  *"})
    assert said.hosts == ("app.example.org", "*.example.com", "*")
    text = "'self' https://example.org:8443  https://*.example.com"
    said = settings.read({"TFM_FRAME_ANCESTORS": text})
    assert said.frame_ancestors == " ".join(text.split())
    for text in [
        "a; script-src *",
        "'self', *",
        "https://a.org\nX: y",
        "javascript:",
        "'unsafe-inline'",
    ]:
        with pytest.raises(ValueError, match="TFM_FRAME_ANCESTORS is"):
            settings.read({"TFM_FRAME_ANCESTORS": text})
    for text in ["http://a.org", "a.org:80", "*a.org", "a..org", "a/b", "a.*"]:
        with pytest.raises(ValueError, match="TFM_HOSTS is"):
            settings.read({"TFM_HOSTS": text})


def test_the_list_of_settings_has_every_variable_with_its_defaults() -> None:
    listed = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(TFM_\w+)` \| .+ \| (.+) \| (.+) \|$", listed, re.MULTILINE)
    assert [name for name, _default, _zero in rows] == [*VARIABLES, *settings.OTHERS]
    for name, default, zero in rows:
        field = VARIABLES.get(name)
        assert ("only shows" in zero) == (field in ("max_running", "max_seconds", "max_disk"))
        assert ("public:" in default) == (field in PUBLIC)
        for value in re.findall(r"public: `?([^`]+)`?", default):
            assert getattr(settings.read({name: value}), field) == PUBLIC[field]
    for limit in ("max_queued", "max_per_session", "max_pause", "max_steps", "max_parameters"):
        assert f"{getattr(PUBLIC_LIMITS, limit):,}" in listed


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

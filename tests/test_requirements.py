"""What the light requirements install is enough for the recorded runs."""

import subprocess
import sys
from pathlib import Path

from tests.lacking import without
from tests.static.repository import ROOT, repository
from tests.static.requirements import DISTRIBUTION, declared

APP = """
import os
os.environ["TFM_RECORDED_ONLY"] = "1"
import app
from pages import publish
assert publish.main(["recorded-korean", "--model"]) == 2
"""
MISSING = "torch is missing: pip install -r requirements.txt\n"


def test_the_recorded_runs_need_no_more_than_the_light_requirements(tmp_path: Path) -> None:
    light, whole = (declared(repository(), f"requirements{kind}.txt") for kind in ("-light", ""))
    modules = {name: module for module, name in DISTRIBUTION.items()}
    streamlits = {"pandas", "pillow", "packaging"}  # it brings them along
    hidden = {modules.get(name, name) for name in whole.keys() - light.keys() - streamlits}
    assert {"torch", "torchvision"} <= hidden
    environment = without(hidden, tmp_path) | {"TFM_RUNS_DIR": str(tmp_path / "runs")}
    command = [sys.executable, "-m", "pages.publish", "--recorded", "--to", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    n_bytes = sum(path.stat().st_size for path in (tmp_path / "site").rglob("*.*"))
    guide = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert f"files (about {n_bytes / 1e6:.1f} MB)" in guide
    for arguments, why in (
        (["-c", APP], MISSING),
        (["-m", "tfm_core", "runs"], ""),
        (["-m", "tfm_core", "train", "--preset", "copy"], MISSING),
        (["-m", "tfm_core", "doctor"], MISSING),
    ):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.stderr == why

"""What the light requirements install is enough for the recorded runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lacking import without
from tests.static.repository import ROOT, repository
from tests.static.requirements import DISTRIBUTION, declared


def test_the_recorded_runs_need_no_more_than_the_light_requirements(tmp_path: Path) -> None:
    light, whole = (declared(repository(), f"requirements{kind}.txt") for kind in ("-light", ""))
    modules = {name: module for module, name in DISTRIBUTION.items()}
    streamlits = {"pandas", "pillow", "packaging"}  # it brings them along
    hidden = {modules.get(name, name) for name in whole.keys() - light.keys() - streamlits}
    assert {"torch", "torchvision"} <= hidden
    environment = without(hidden, tmp_path) | {"TFM_RUNS_DIR": str(tmp_path / "runs")}
    command = [sys.executable, "-m", "pages.publish", "--recorded", "--to", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    code = "import os; os.environ['TFM_RECORDED_ONLY'] = '1'; import app"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env=environment)

"""Every direct import is declared where the README installs it from; every pin is allowed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.lacking import without

ROOT = Path(__file__).resolve().parents[1]
OURS = {"app", "pages", "tfm_core", "tests", "benchmarks", "_typeshed"}
DISTRIBUTION = {
    "PIL": "pillow",
    "axe_playwright_python": "axe-playwright-python",
    "onnx_ir": "onnx-ir",
    "pydantic_core": "pydantic",
    "pydantic_settings": "pydantic-settings",
    "xdist": "pytest-xdist",
    "vit_pytorch": "vit-pytorch",
}
"""What brings a module that has another name."""
THROUGH_ANOTHER = {"cmaes", "onnxscript"}
"""What Optuna's CMA-ES sampler and PyTorch's ONNX exporter import for us."""


FOR_CLUSTERS = {"ray", "requests"}
"""Of ``requirements-cluster.txt``: Ray, and what its client asks with."""
FOR_LOGINS = {"authlib"}
"""Of ``requirements-login.txt``: what Streamlit logs people in with."""
FOR_THE_HUB = {"huggingface_hub"}
"""Of ``requirements-hub.txt``: what downloads a model by its id."""
FOR_PARITY = {"transformers"}
"""Of ``requirements-bench.txt``: what tests of opened folders compare with, where it is there."""
FOR_ADAPTERS = {"peft"}
"""What tests of adapters compare with, where it is installed."""


def declared(file: str) -> dict[str, Requirement]:
    """Return the requirements of a file, and of those that it includes, by name."""
    found = {}
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found |= declared(line.removeprefix("-r "))
        elif line and not line.startswith("#"):
            requirement = Requirement(line)
            found[requirement.name] = requirement
    return found


def imported(*places: str) -> set[str]:
    """Return the distributions that the files of some folders import, inside functions too."""
    found = set()
    for place in places:
        path = ROOT / place
        for file in [path] if path.is_file() else path.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found.add(node.module.split(".")[0])
    others = found - OURS - sys.stdlib_module_names
    return {DISTRIBUTION.get(name, name) for name in others}


@pytest.mark.parametrize(
    ("file", "places"),
    [
        ("requirements.txt", ("app.py", "pages", "tfm_core")),
        ("requirements-dev.txt", ("tests",)),
        ("requirements-bench.txt", ("benchmarks",)),
    ],
)
def test_every_direct_import_is_declared(file: str, places: tuple[str, ...]) -> None:
    for_tests = FOR_PARITY | FOR_ADAPTERS if places == ("tests",) else set()
    optional = FOR_CLUSTERS | FOR_LOGINS | FOR_THE_HUB | for_tests
    assert imported(*places) - declared(file).keys() - optional == set()


def test_what_tests_compare_with_is_declared_for_benchmarks() -> None:
    assert declared("requirements-bench.txt").keys() >= FOR_PARITY
    assert declared("requirements-hub.txt").keys() >= FOR_THE_HUB


def test_ray_is_imported_only_by_who_asks_it() -> None:
    code = (
        "import sys, tfm_core.cli, tfm_core.runs.queue.run_queue; assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_nothing_is_declared_for_the_app_that_it_never_imports() -> None:
    optional = FOR_CLUSTERS | FOR_LOGINS | FOR_THE_HUB
    needed = (imported("app.py", "pages", "tfm_core") - optional) | THROUGH_ANOTHER
    assert declared("requirements.txt").keys() == needed


def test_the_recorded_runs_need_no_more_than_the_light_requirements(tmp_path) -> None:
    light, whole = declared("requirements-light.txt"), declared("requirements.txt")
    assert {name: whole[name] for name in light} == light
    modules = {name: module for module, name in DISTRIBUTION.items()}
    streamlits = {"pandas", "pillow", "packaging"}  # it brings them along
    hidden = {modules.get(name, name) for name in whole.keys() - light.keys() - streamlits}
    assert {"torch", "torchvision"} <= hidden
    environment = without(hidden, tmp_path) | {"TFM_RUNS_DIR": str(tmp_path / "runs")}
    command = [sys.executable, "-m", "pages.publish", "--recorded", "--to", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    code = "import os; os.environ['TFM_RECORDED_ONLY'] = '1'; import app"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env=environment)


def test_every_pin_is_a_release_that_the_requirements_allow() -> None:
    pins = declared("constraints.txt")
    wanted = declared("requirements-dev.txt")
    assert wanted.keys() <= pins.keys()
    for name, requirement in wanted.items():
        (pin,) = pins[name].specifier
        assert pin.operator == "=="
        assert requirement.specifier.contains(pin.version), f"{requirement} forbids {pin}"

"""What a server imports before its first visitor brings none of the packages that take seconds."""

import os
import pydoc
import subprocess
import sys
from pathlib import Path

import tfm_core
from tests.static.repository import ROOT
from tfm_core.runs.notebook import list_runs

SCRIPT = """
import sys
from importlib import import_module

def bring(modules, *heavy):
    for name in modules:
        import_module(name)
        found = set(heavy) & sys.modules.keys()
        assert not found, f"{name} brings {found}"

bring(
    ["tfm_core.choices.variants.positions", "tfm_core.data.text", "tfm_core.data.vocabulary",
     "tfm_core.training.devices", "tfm_core.runs", "tfm_core.runs.queue.run_queue", "tfm_core.cli",
     "tfm_core.inspect.attention.example", "tfm_core.sweeps.driver"],
    "torch", "pandas", "optuna", "ray", "streamlit",
)
import app
from pages.server import warm
from streamlit.testing.v1 import AppTest

bring(warm.MODULES, "torch", "pandas", "optuna", "segno")
home = AppTest.from_file("pages/frame.py", default_timeout=60).run()
assert not home.exception, home.exception
assert home.title
assert not {"torch", "pandas"} & sys.modules.keys(), "drawing Home"
bring(
    ["pages.learn.by_hand", "pages.learn.numbers.tensors", "pages.train.live",
     "pages.train.configure",
     "pages.compare.sweeps.page", "pages.compare.sweeps.running"],
    "torch", "optuna",
)
"""


def test_the_package_names_what_a_notebook_uses() -> None:
    assert {"look", "runs"} <= set(dir(tfm_core)) & set(tfm_core.__all__)
    assert tfm_core.runs.list is list_runs
    words = pydoc.plain(pydoc.render_doc(tfm_core))
    assert "tfm_core.look(" in words
    assert "tfm_core.runs" in words


def test_imports_of_the_core_and_of_pages_are_light(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env={**os.environ, "TFM_RUNS_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

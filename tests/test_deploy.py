"""What puts the app on other machines names files and variables that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = (
    "Dockerfile",
    "compose.yaml",
    "docs/deploy.md",
    "docs/cluster.md",
    "docs/storage.md",
    "docs/cli.md",
)


@pytest.mark.parametrize("name", NAMED)
def test_every_variable_is_in_the_list_of_settings(name: str) -> None:
    listed = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| `(TFM_[A-Z_]+)`", listed, re.MULTILINE))
    said = set(re.findall(r"\bTFM_[A-Z_]+\b", (ROOT / name).read_text(encoding="utf-8")))
    assert said
    assert said <= known


def test_the_image_gets_all_that_it_copies_and_all_that_the_app_is() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied == {line[1:] for line in let_in if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)
    assert copied >= {"app.py", "pages", "tfm_core", ".streamlit", "requirements.txt"}

"""The components' scripts: what they compute, and what cannot be one text."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pages.components.files import bundled

UNIT_TESTS = sorted((Path(__file__).parent / "scripts").glob("*.test.js"))
NODE = shutil.which("node")
with_node = pytest.mark.skipif(NODE is None, reason="there is no node on the PATH")


def node(*arguments: str | Path) -> None:
    assert NODE is not None
    done = subprocess.run([NODE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@with_node
def test_what_the_scripts_compute():
    node("--test", *UNIT_TESTS)


def test_modules_that_cannot_be_one_text_get_a_sentence(tmp_path):
    (tmp_path / "one.js").write_text('import { two, gone } from "./two.js";\n', encoding="utf-8")
    (tmp_path / "two.js").write_text("export const two = 2;\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"two\.js does not export gone"):
        bundled("one.js", tmp_path)
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = b;\n', "utf-8")
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = a;\n', "utf-8")
    with pytest.raises(ValueError, match=r"circle: a\.js -> b\.js -> a\.js"):
        bundled("a.js", tmp_path)
    (tmp_path / "a.js").write_text('import * as all from "./b.js";\n', encoding="utf-8")
    with pytest.raises(ValueError, match="not understood"):
        bundled("a.js", tmp_path)

"""A command that is shown or written into a zip runs model.py with one text, and nothing else."""

import re
import shlex
import shutil
import subprocess

import pytest

from tests.export.exported import members, untrained
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.export import layout
from tfm_core.export.bundle import bundle
from tfm_core.runs.store import RunStore
from tfm_core.trace.source.carried import PLACEHOLDER, Carried, command

HOSTILE = (
    "`touch MARK`",
    "$(touch MARK) a1",
    '"; touch MARK; "',
    "'; touch MARK; '",
    "a\ntouch MARK",
    "a\r\ntouch MARK",
    "a & touch MARK",
    "a | touch MARK",
    "a; touch MARK",
    "a > MARK",
    "<(touch MARK)",
    "${IFS}",
    "a\\",
    "!!",
    "%PATH%",
    "”; touch MARK",
    "--help",
    "-5+3",
    "*",
    "~",
    "#",
    "",
    "{touch,MARK}",
)
SAFE = ("cat", "the cat sat", "나는 학생", "2024-05-01", "12+7", "it's", "a, b; c?", "(x)")
PATHS = ("weights.safetensors", "/runs of mine/$(touch MARK)/w", "C:/Users/Ann B/w", "/it's/w")


def text_of(text: str) -> str:
    return command(Carried("answer", example=text), "w.safetensors")


def in_bash(line: str, folder) -> list[str]:
    """What bash hands to python, one argument a line; python itself is a function here."""
    script = f"python() {{ printf '%s\\n' \"$@\"; }}\n{line}\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_a_text_is_one_argument_behind_the_weights_in_quotes_that_hide_nothing():
    for text in (*SAFE, *HOSTILE):
        read = shlex.split(text_of(text))
        assert read[:4] == ["python", "model.py", "--checkpoint", "w.safetensors"]
        assert read[4:] in ([text], [PLACEHOLDER]), text
        assert text in HOSTILE or read[4] == text
        argument = text_of(text).removeprefix("python model.py --checkpoint w.safetensors ")
        if text in HOSTILE:
            assert re.fullmatch(r'"[^"“”„$`\\!%\x00-\x1f]+"|[\w./:+-]+', argument), text


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_runs_nothing_of_a_text_and_reads_a_path_as_it_is(tmp_path):
    for text in (*SAFE, *HOSTILE):
        assert in_bash(text_of(text), tmp_path)[3:] in ([text], [PLACEHOLDER])
    for path in PATHS:
        read = in_bash(command(Carried("answer", example="cat"), path), tmp_path)
        assert read == ["model.py", "--checkpoint", path, "cat"]
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_commands_of_a_zip_run_nothing_of_its_data(tmp_path):
    store = RunStore(tmp_path / "runs", recorded=None)
    lines = [f"`touch MARK` $(touch MARK{n}) a{n}\tx y {n}" for n in range(60)]
    with sets.below(store.root):
        written = sets.write(prepare(inspect_text("pairs", "\n".join(lines)), name="$(touch N)"))
        run = untrained(store, kinds.proposal(written).experiment)
    readme = members(bundle(run))[layout.README].decode()
    commands = [line for line in readme.splitlines() if line.startswith("python model.py")]
    assert commands
    folder = tmp_path / "empty"
    folder.mkdir()
    for line in commands:
        shlex.split(line)
        in_bash(line, folder)
    assert not list(folder.iterdir())

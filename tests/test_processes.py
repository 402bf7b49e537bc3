"""A forked process is as one that was started; one that is left behind fails its test."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes
from tests.runs.waiting import wait_until

pytest_plugins = ["pytester"]
needs_forks = pytest.mark.skipif(
    not processes.IS_LINUX or processes.HAS_GPU, reason="processes are started here"
)
FACTS = """
import json, os, random, sys
import numpy, torch
facts = {
    "argv": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ),
    "path": sys.path[0], "main": sys.modules["__main__"].__dict__ is globals(),
    "session": os.getsid(0) == os.getpid(), "threads": torch.get_num_threads(),
    "files": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:3],
    "read": sys.stdin.read(),
}
print(json.dumps(facts))
print("an error", file=sys.stderr)
print(random.random(), numpy.random.rand(), torch.initial_seed())
"""


def ran(code: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


def facts(tmp_path: Path, env: dict[str, str]) -> tuple[dict[str, object], set[str]]:
    done = ran(FACTS, "one", "two", input="typed", cwd=tmp_path, env=env, start_new_session=True)
    assert done.stderr == "an error\n"
    said, chance = done.stdout.splitlines()
    return json.loads(said), set(chance.split())


@needs_forks
@pytest.mark.usefixtures("forked_all")
def test_a_forked_process_finds_what_a_started_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {**os.environ, "TFM_MARK": "7", "OMP_NUM_THREADS": "2"}
    forked, others = facts(tmp_path, env), facts(tmp_path, env)
    monkeypatch.setattr(subprocess, "Popen", processes.Forked.__base__)
    assert facts(tmp_path, env)[0] == forked[0]
    assert len(forked[1] | others[1]) == 6  # no two draw the same numbers


@needs_forks
@pytest.mark.usefixtures("forked_all")
def test_a_forked_process_ends_as_a_started_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {
        "import sys; sys.exit(7)": 7,
        "raise SystemExit('a sentence')": 1,
        "1 / 0": 1,
        "import os; os._exit(3)": 3,
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": -signal.SIGTERM,
        "import atexit; atexit.register(print, 'at the end')": 0,
        "import threading; threading.Timer(0.01, print, ['a thread']).start()": 0,
    }
    forked = {code: ran(code) for code in ends}
    assert {code: done.returncode for code, done in forked.items()} == ends
    monkeypatch.setattr(subprocess, "Popen", processes.Forked.__base__)
    for code, done in forked.items():
        started = ran(code)
        assert (done.stdout, done.stderr.splitlines()[-1:]) == (
            started.stdout,
            started.stderr.splitlines()[-1:],
        )


@needs_forks
def test_a_module_of_ours_is_forked_and_any_other_started() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tfm_core.runs.process.worker", "--warm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert b"tests.zygote" in command
    assert process.communicate(b"\n")[0] == b"ready\n"
    assert process.returncode == 0
    code = "import sys; sys.exit('torch' in sys.modules)"
    for other in (["-c", code], ["-I", "-c", code]):
        assert subprocess.run([sys.executable, *other], check=False).returncode == 0


@needs_forks
@pytest.mark.usefixtures("true_start")
def test_a_test_may_ask_for_true_starts() -> None:
    assert not issubclass(subprocess.Popen, processes.Forked)


@needs_forks
@pytest.mark.usefixtures("forked_all")
def test_a_forked_process_is_waited_for_and_killed_as_any_child() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process.poll() is None
    assert process.pid in processes.children()
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert process.pid not in processes.children()
    process.communicate()


@pytest.mark.skipif(not processes.IS_LINUX, reason="/proc tells what lives")
def test_what_a_test_leaves_behind_fails_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.1)
    monkeypatch.setattr(processes.ZYGOTE, "close", lambda: None)  # at the end of the tests in it
    pytester.makepyfile(
        """
        import os, signal, subprocess
        import pytest

        def start():
            return os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")

        def end(pid):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

        @pytest.fixture(scope="module")
        def server():
            pid = start()
            yield pid
            end(pid)

        def test_leaves(): start()
        def test_ends(): end(start())
        def test_asks(server): os.kill(server, 0)
        def test_asks_again(server): os.kill(server, 0)
        def test_shell(): subprocess.run("sleep 1000 & exit", shell=True)
        """
    )
    done = pytester.inline_run("-p", "tests.processes", "-p", "no:xdist", "-p", "no:cacheprovider")
    passed, _skipped, failed = done.listoutcomes()
    assert [report.nodeid.partition("::")[2] for report in failed] == ["test_leaves", "test_shell"]
    assert len(passed) == 5
    (report, *_) = failed
    assert "leaves processes behind" in str(report.longrepr)
    wait_until(lambda: not processes.children(), "what was left is killed")

"""Every test begins alike, whatever ran before it; the many are shared out among processes."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests import fresh

pytest_plugins = ["tests.tiers", "tests.costs", "tests.processes"]

os.environ["LANGUAGE"] = "en"  # else the command line speaks that of the system

MAX_PROCESSES = 8
BROWSER = "tests/browser/"


def pytest_configure(config: pytest.Config) -> None:
    """Let random examples differ from commit to commit."""
    fresh.draw_examples(config)


def pytest_report_header() -> str:
    """Say what draws the same random examples again."""
    return fresh.header()


@pytest.fixture(autouse=True)
def _a_fresh_start() -> None:
    """Set what torch keeps for the whole process: seed, threads (one, as in the app), denormals.

    Whatever trains in the process of the tests changes them.
    """
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        return  # nobody has changed it yet; a thread of the app may be importing it just now
    # manual_seed would note a stack for each GPU there may be
    torch.default_generator.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(False)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Return an empty store of runs, without the recorded ones, where ``TFM_RUNS_DIR`` says."""
    from tfm_core.runs.store import RunStore

    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    return RunStore(recorded=None)


@pytest.fixture
def here(tmp_path: Path) -> object:
    """Return an empty store of runs; what leaves it goes ``there``."""
    from tfm_core.runs.store import RunStore

    return RunStore(tmp_path / "here", recorded=None)


@pytest.fixture
def there(tmp_path: Path) -> object:
    """Return an empty store of runs elsewhere."""
    from tfm_core.runs.store import RunStore

    return RunStore(tmp_path / "there", recorded=None)


@pytest.fixture
def opened(store: object, tmp_path: Path) -> Callable[..., object]:
    """Open a small pretrained model of a name, with a tokenizer, as a run."""
    from tests.pretrained.with_tokenizer import folder_with_tokenizer
    from tfm_core.export.opening import open_run

    return lambda name, **config: open_run(
        folder_with_tokenizer(name, tmp_path / "opened" / name, **config), store
    )


@pytest.fixture
def neighbour() -> Iterator[object]:
    """The mark of another process that lives; a parent would not do, a container may show none."""
    from tfm_core.runs.process.identity import process_id

    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process_id(process.pid)
    process.communicate(b"\n")


class FileByFile(LoadScopeScheduling):
    """Give a process a file at a time, so that what a file trains for its tests is trained once.

    The browser tests go to the first process, which starts the one server and the one browser.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::", 1)[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) > 0:
            others = (file for file in self.workqueue if not file.startswith(BROWSER))
            file = next(others, None)
            if file is None:
                node.shutdown()
                return
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FileByFile:
    """Share the tests out; the browser tests begin first: nothing else takes as long."""
    return FileByFile(config, log)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use every core for many tests; a few files are done before other processes have begun."""
    if all(Path(name.split("::", 1)[0]).suffix == ".py" for name in config.args):
        return 0
    return min(os.cpu_count() or 1, MAX_PROCESSES)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file for ``-m quick`` that has no such test: that alone would take a while."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    return True if not _has_quick_tests(collection_path) else None


@functools.cache
def _has_quick_tests(path: Path) -> bool:
    return "pytest.mark.quick" in path.read_text(encoding="utf-8")

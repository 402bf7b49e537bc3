"""Which tests a run of pytest holds: the core, the wide tests that a change may break, or all.

``pytest`` runs the core, which decides each change. Tests marked ``wide`` are left out, except
where their file is named, with ``--wide``, and nightly. ``core(n)`` keeps n cases of a
parametrized test in the core, at even distances, and makes the others wide.

``--touched COMMIT`` runs wide tests alone: those whose imports reach a file changed since the
commit, the nearest first, then an eighth of the others, another eighth with each commit. After
the time ``TFM_UNTIL`` (seconds since 1970) no wide test begins; the summary lists those left.
"""

import ast
import itertools
import os
import re
import subprocess
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nightly import IS_NIGHTLY

ROOT = Path(__file__).resolve().parents[1]
PAGE_TABLE = "pages/app/navigation/page_table.py"
N_TURNS = 8
_DISTANCES = pytest.StashKey[dict[str, int]]()


def is_wide(item: pytest.Item) -> bool:
    """Say whether a test is outside the core."""
    return item.get_closest_marker("wide") is not None


def runs_whole_core(config: pytest.Config) -> bool:
    """Say whether nothing but the core was asked for, and all of it."""
    option = config.option
    return [Path(name).resolve() for name in config.args] == [ROOT / "tests"] and not (
        option.keyword or option.markexpr or option.touched or option.wide or IS_NIGHTLY
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose wide tests."""
    group = parser.getgroup("tiers")
    group.addoption("--wide", action="store_true", help="run wide tests, too")
    group.addoption("--touched", metavar="COMMIT", help="run wide tests that a change may break")


def pytest_configure(config: pytest.Config) -> None:
    """Find out what the change touches, once for all processes."""
    commit = config.option.touched
    if hasattr(config, "workerinput"):
        config.stash[_DISTANCES] = config.workerinput["distances"]
    elif commit:
        config.stash[_DISTANCES] = distances(imports(ROOT), changed_files(commit))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of xdist what is touched."""
    node.workerinput["distances"] = node.config.stash.get(_DISTANCES, {})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, and order, what the options say."""
    _mark_wide_cases(items)
    option = config.option
    names_files = all(name.partition("::")[0].endswith(".py") for name in config.args)
    if option.touched:
        chosen = _touched(items, config.stash[_DISTANCES])
    elif option.wide or IS_NIGHTLY or names_files:
        chosen = items[:]
    else:
        chosen = [item for item in items if not is_wide(item)]
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def _mark_wide_cases(items: list[pytest.Item]) -> None:
    by_test = defaultdict(list)
    for item in items:
        if item.get_closest_marker("core"):
            by_test[item.nodeid.partition("[")[0]].append(item)
    for all_cases in by_test.values():
        n_core = all_cases[0].get_closest_marker("core").args[0]
        in_core = {n * len(all_cases) // n_core for n in range(n_core)}
        for n, item in enumerate(all_cases):
            if n not in in_core:
                item.add_marker("wide")


def _touched(items: list[pytest.Item], distance: dict[str, int]) -> list[pytest.Item]:
    wide = [item for item in items if is_wide(item)]
    near = [item for item in wide if _file(item) in distance]
    near.sort(key=lambda item: distance[_file(item)])
    turn = int(_git("rev-list", "--count", "HEAD")) % N_TURNS
    others = [item for item in wide if _file(item) not in distance]
    return near + [item for item in others if zlib.crc32(item.nodeid.encode()) % N_TURNS == turn]


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no wide test behind the time limit."""
    limit = os.environ.get("TFM_UNTIL")
    if limit and is_wide(item) and time.time() > float(limit):
        pytest.skip("The time for wide tests was over.")


def changed_files(commit: str) -> set[str]:
    """Return the paths that differ between a commit and the working tree."""
    return set(_git("diff", "--name-only", commit).splitlines())


def _git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True)


def imports(root: Path) -> dict[str, set[str]]:
    """Return which of our files each Python file imports, lazily, too, by their paths.

    A test of pages opens them by name: it counts as importing those that it names, or all.
    """
    files = {str(path.relative_to(root)) for path in _sources(root)}
    named = re.findall(r'script="([^"]+)"', (root / PAGE_TABLE).read_text(encoding="utf-8"))
    pages = {name for name in files if name.startswith("pages/") and name.endswith("/page.py")}
    pages |= {f"pages/{name}" for name in named}
    found = {}
    for name in files:
        found[name] = set(_imported(root / name, name)) & files
        if name.startswith(("tests/pages/", "tests/browser/")):
            text = (root / name).read_text(encoding="utf-8")
            found[name] |= {page for page in pages if page.removeprefix("pages/") in text} or pages
    return found


def _sources(root: Path) -> Iterator[Path]:
    for folder in ("tfm_core", "pages", "benchmarks", "tests"):
        yield from (root / folder).rglob("*.py")
    yield root / "app.py"


def _imported(path: Path, name: str) -> Iterator[str]:
    package = Path(name).parent.parts
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (above, node.module)))
            modules = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for parts in (module.split(".") for module in modules):
            yield from (f"{'/'.join(parts[:n])}/__init__.py" for n in range(1, len(parts) + 1))
            yield f"{'/'.join(parts)}.py"


def distances(imported: dict[str, set[str]], changed: set[str]) -> dict[str, int]:
    """Return how many imports each file is away from a change; files that no change reaches miss.

    A changed file that is no Python counts for the Python files of the nearest folder above it.
    """
    importers = defaultdict(set)
    for name, targets in imported.items():
        for target in targets:
            importers[target].add(name)
    found = dict.fromkeys(itertools.chain(*(_own(name, imported) for name in changed)), 0)
    queue = deque(found)
    while queue:
        name = queue.popleft()
        for importer in sorted(importers[name] - found.keys()):
            found[importer] = found[name] + 1
            queue.append(importer)
    return found


def _own(changed: str, files: Iterable[str]) -> list[str]:
    if changed.endswith(".py"):
        return [changed]
    for folder in map(str, Path(changed).parents[:-1]):  # never the root: README touches nothing
        if own := [name for name in files if os.path.dirname(name) == folder]:
            return own
    return []

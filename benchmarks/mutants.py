"""How many planted faults the tests notice: mutants of the core and of the pages.

A mutant is the source with one place changed: a comparison, an operator, a number, a condition. A
part of them is drawn, long modules more often; the others (``mutants_by_hand``) leave results
plausible. All happens in a copy of the tree. There one process imports what is slow to import and
forks a child for each mutant, which runs the tests that run the changed line until one fails. A
test that fails without the mutant, too, counts for nothing.

The seed is the commit's, or ``TFM_SEED``; the table names what survived.
"""

from __future__ import annotations

import ast
import compileall
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from coverage import CoverageData

from benchmarks.mutants_by_hand import CHANGE_NOTHING, PLANTED
from benchmarks.report import Figure, Skipped, Table
from tests.fresh import SEED

ROOT = Path(__file__).resolve().parent.parent
DRAWN, QUICK, QUICK_EVERY = 50, 3, 50
MAX_SECONDS = 120  # CPU seconds of the tests that a mutant is shown to

_TESTS, _DATA = "tests/**/test_*.py", "covering.data"
_UNSEEN = frozenset(
    {
        "height",
        "width",
        "size",
        "gap",
        "xgap",
        "ygap",
        "border",
        "opacity",
        "horizontal",
        "strict",
        "slots",
        "timeout",
    }
)
"""Keywords whose values are layout, or have no effect that a test should look for."""
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_COMPUTED: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "*",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one place changed.

    start: where ``old`` begins, in characters. line: the first that it changes, from 1.
    """

    path: str
    start: int
    line: int
    old: str
    new: str

    @property
    def lines(self) -> range:
        """The lines that it changes."""
        return range(self.line, self.line + self.old.count("\n") + 1)

    def __str__(self) -> str:
        """Return the place and the change, in one line."""
        before, after = (" ".join(text.split())[:60] for text in (self.old, self.new))
        return f"{self.path}: {before} → {after}".replace("|", "¦")


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Plant faults one after the other, and count those that a test notices."""
    if sys.platform != "linux":
        yield Skipped("Planted faults", "it forks as Linux does")
        return
    with tempfile.TemporaryDirectory() as folder:
        copies = [_copied(Path(folder) / str(k)) for k in range(os.cpu_count() or 1)]
        drawn = draw(copies[0], QUICK if quick else DRAWN, SEED)
        mutants = [*drawn, *by_hand(copies[0])[: QUICK if quick else None]]
        begin = time.monotonic()
        covering = Covering(copies, every=QUICK_EVERY if quick else 1)
        found = _outcomes(copies, mutants, covering)
    rows = []
    for room, belongs in (
        ("core, drawn", lambda k: k < len(drawn) and mutants[k].path.startswith("tfm_core")),
        ("pages, drawn", lambda k: k < len(drawn) and mutants[k].path.startswith("pages")),
        ("by hand", lambda k: k >= len(drawn)),
    ):
        own = [bool(killer) for k, killer in enumerate(found) if belongs(k)]
        rows.append((room, str(len(own)), str(sum(own)), f"{sum(own) / max(len(own), 1):.0%}"))
    survivors = [str(one) for one, killer in zip(mutants, found, strict=True) if not killer]
    notes = [f"Seed {SEED}; {time.monotonic() - begin:.0f} s."]
    notes += [f"Survived: {'; '.join(survivors)}."] if survivors else []
    share = 100 * (1 - len(survivors) / len(mutants))
    yield Table(
        "Planted faults",
        ("where", "mutants", "noticed", "share"),
        rows,
        notes,
        reached={"planted faults": Figure(share)},
    )


def draw(root: Path, n: int, seed: int) -> list[Mutant]:
    """Return so many mutants, each of another module."""
    rng = random.Random(seed)
    texts = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for top in ("tfm_core", "pages")
        for path in sorted((root / top).rglob("*.py"))
        if path.name != "__init__.py"
    }
    mutants: list[Mutant] = []
    while len(mutants) < n:
        path = rng.choices(list(texts), [text.count("\n") for text in texts.values()])[0]
        text = texts.pop(path)
        places = _places(text)
        if not places:
            continue
        kind = rng.choice(sorted({kind for kind, *_place in places}))
        _kind, start, old, new = rng.choice([place for place in places if place[0] == kind])
        if (path, old, new) not in CHANGE_NOTHING:
            mutants.append(Mutant(path, start, text.count("\n", 0, start) + 1, old, new))
    return mutants


def by_hand(root: Path) -> list[Mutant]:
    """Return the mutants of ``PLANTED``. Raises ValueError where a place is not found once."""
    mutants = []
    for path, old, new in PLANTED:
        text = (root / path).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{path} has {old!r} {text.count(old)} times, not once")
        start = text.index(old)
        mutants.append(Mutant(path, start, text.count("\n", 0, start) + 1, old, new))
    return mutants


def _places(text: str) -> list[tuple[str, int, str, str]]:
    """Return the kind, the start and both texts of each change that can be made."""
    tree, places = ast.parse(text), []
    left_out = {
        id(node) for top in ast.walk(tree) for part in _passed(top) for node in ast.walk(part)
    }
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for node in ast.walk(tree):
        if id(node) not in left_out and isinstance(node, ast.expr):
            old = ast.get_source_segment(text, node) or ""
            line = text[lines[node.lineno - 1] : lines[node.lineno]]
            start = lines[node.lineno - 1] + len(line.encode()[: node.col_offset].decode())
            places += [(kind, start, old, new) for kind, new in _changes(node)]
    return places


def _passed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that no mutant changes: types, words, and what raises."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield from node.decorator_list
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        yield node
    if isinstance(node, ast.keyword) and node.arg in _UNSEEN:
        yield node
    if isinstance(node, ast.If) and ast.unparse(node.test).startswith(("TYPE_", "__name__")):
        yield node
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {"N_", "_", "st.columns"}:
        yield node
    for name in ("annotation", "returns"):
        if part := getattr(node, name, None):
            yield part


def _changes(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield each kind of change that an expression takes, with its new text."""
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARED:
            new = f"{ast.unparse(left)} {_COMPARED[type(op)]} {ast.unparse(right)}"
            yield "comparison", f"({new})"
        case ast.BinOp(left, op, right) if type(op) in _COMPUTED:
            texts = (ast.Constant, ast.JoinedStr)
            words = [one for one in (left, right) if isinstance(one, texts)]
            if not any(isinstance(getattr(one, "value", ""), str) for one in words):
                new = f"(({ast.unparse(left)}) {_COMPUTED[type(op)]} ({ast.unparse(right)}))"
                yield "operator", new
        case ast.Constant(bool(value)):
            yield "truth", repr(not value)
        case ast.Constant(int(value)):
            yield "number", repr(value + 1)
        case ast.Constant(float(value)):
            yield "number", repr(2 * value or 1.0)
        case ast.BoolOp(op, values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield "condition", f"({word.join(f'({ast.unparse(one)})' for one in values)})"
        case ast.UnaryOp(ast.Not(), operand):
            yield "condition", f"({ast.unparse(operand)})"
        case ast.IfExp(test, body, orelse):
            yield (
                "condition",
                f"({ast.unparse(orelse)} if {ast.unparse(test)} else {ast.unparse(body)})",
            )


class Covering:
    """Which tests run which lines."""

    def __init__(self, copies: Sequence[Path], every: int = 1) -> None:
        """Run the core of the tests once, a part of its files in each copy.

        every: of so many files one is run.
        """
        files = sorted(str(path.relative_to(copies[0])) for path in copies[0].glob(_TESTS))
        files = [file for file in files if "/browser/" not in file][::every]
        running = []
        for k, copy in enumerate(copies):
            command = [sys.executable, "-m", "benchmarks.mutant_coverage", str(copy / _DATA)]
            command += files[k :: len(copies)]
            running.append(subprocess.Popen(command, cwd=copy, stdout=subprocess.DEVNULL))
        for process in running:
            process.wait()
        self._found = []
        self._seconds: dict[str, float] = {}
        for copy in copies:
            found = CoverageData(str(copy / _DATA))
            found.read()
            self._found.append((copy, found))
            seconds = (copy / _DATA).with_suffix(".json").read_text(encoding="utf-8")
            self._seconds |= json.loads(seconds)

    def tests(self, path: str, lines: range) -> tuple[str, ...]:
        """Return the tests that run one of these lines, the quickest first.

        What is run while a module is imported, or in another process, no test is known to run: then
        those that run anything else of the module.
        """
        by_line: dict[int, set[str]] = {}
        inside = _lines_of_functions((self._found[0][0] / path).read_text(encoding="utf-8"))
        for copy, found in self._found:
            for line, tests in found.contexts_by_lineno(str(copy / path)).items():
                if line in inside:  # the test that imported a module first says nothing of it
                    by_line.setdefault(line, set()).update(filter(None, tests))
        of_lines = set().union(*(by_line.get(line, set()) for line in lines))
        left, chosen = float(MAX_SECONDS), []
        for test in sorted(
            of_lines or set().union(*by_line.values()), key=self._seconds.__getitem__
        ):
            left -= self._seconds[test]
            if left > 0:
                chosen.append(test)
        return tuple(chosen)


def _lines_of_functions(text: str) -> set[int]:
    """Return the lines that run when a function is called."""
    return {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        for line in range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
    }


def _copied(copy: Path) -> Path:
    """Copy what the repository holds, compiled so that a changed module is compiled again."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for top in ("tests", "tfm_core", "pages"):
        mode = compileall.py_compile.PycInvalidationMode.CHECKED_HASH  # type: ignore[attr-defined]
        compileall.compile_dir(
            copy / top, quiet=2, rx=re.compile("recorded"), invalidation_mode=mode
        )
    return copy


def _outcomes(copies: Sequence[Path], mutants: Sequence[Mutant], covering: Covering) -> list[str]:
    """Return the test that noticed each mutant, else ""; one process tests in each copy."""
    left, found = SimpleQueue[int](), [""] * len(mutants)
    for k in range(len(mutants)):
        left.put(k)

    def work(copy: Path) -> None:
        for k, killer in _killers(copy, mutants, covering, left):
            print(f"{mutants[k]}: {killer or 'survived'}", file=sys.stderr, flush=True)
            found[k] = killer

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(work, copies))
    return found


def _killers(
    copy: Path, mutants: Sequence[Mutant], covering: Covering, left: SimpleQueue[int]
) -> Iterator[tuple[int, str]]:
    """Take mutants while there are some; yield the number of each and what noticed it."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "TFM_SEED": str(SEED),
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.mutant_server"],
        cwd=copy,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(Empty):
            while True:
                k = left.get_nowait()
                task = asdict(mutants[k])
                tests = covering.tests(mutants[k].path, mutants[k].lines)
                process.stdin.write(json.dumps({"mutant": task, "tests": tests}) + "\n")
                process.stdin.flush()
                yield k, json.loads(process.stdout.readline())
        process.stdin.close()

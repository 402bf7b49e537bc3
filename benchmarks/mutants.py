"""How many planted faults the tests notice: mutants of the core and of the pages.

A mutant is the source with one place changed: a comparison, an operator, a number, a condition. A
part of them is drawn, long modules more often; the others (``mutants_by_hand``) leave results
plausible. All happens in a copy of the tree. There one process imports what is slow to import and
forks a child for each mutant, which runs the tests nearest to the changed module until one fails.
A test that fails without the mutant, too, counts for nothing.

The seed is the commit's, or ``TFM_SEED``; the table names what survived.
"""

from __future__ import annotations

import ast
import compileall
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
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from benchmarks.mutants_by_hand import CHANGE_NOTHING, PLANTED
from benchmarks.report import Figure, Skipped, Table
from tests.fresh import SEED

ROOT = Path(__file__).resolve().parent.parent
DRAWN, QUICK = 50, 3
MAX_FILES = 16  # of tests, for a mutant
LAST = ("tests/pages/test_record.py", "tests/pages/test_every_kind_of_run.py")  # on all pages

_UNSEEN = frozenset(
    {
        "height",
        "width",
        "size",
        "gap",
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
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "*",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one place changed; start: where ``old`` begins, in characters."""

    path: str
    start: int
    old: str
    new: str
    tests: tuple[str, ...]

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
        copy = _copied(Path(folder) / "tree")
        drawn = draw(copy, QUICK if quick else DRAWN, SEED)
        mutants = [*drawn, *by_hand(copy)[: QUICK if quick else None]]
        begin = time.monotonic()
        found = list(_outcomes(copy, mutants))
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
    """Return so many mutants, each of another module, of those that have tests."""
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
        places, tests = _places(text), nearest(root, path)
        if not places or not tests:
            continue
        kind = rng.choice(sorted({kind for kind, *_place in places}))
        start, old, new = rng.choice([place for one, *place in places if one == kind])
        if (path, old, new) not in CHANGE_NOTHING:
            mutants.append(Mutant(path, start, old, new, tests))
    return mutants


def by_hand(root: Path) -> list[Mutant]:
    """Return the mutants of ``PLANTED``. Raises ValueError where a place is not found once."""
    mutants = []
    for path, old, new in PLANTED:
        text = (root / path).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{path} has {old!r} {text.count(old)} times, not once")
        mutants.append(Mutant(path, text.index(old), old, new, nearest(root, path)))
    return mutants


def _places(text: str) -> list[tuple[str, int, str, str]]:
    """Return the kind, the start and both texts of each change that can be made."""
    tree, places = ast.parse(text), []
    left_out = {id(node) for top in ast.walk(tree) for part in _passed(top) for node in
                ast.walk(part)}  # fmt: skip
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
            yield "condition", f"({ast.unparse(orelse)} if {ast.unparse(test)} else "\
                f"{ast.unparse(body)})"  # fmt: skip


@cache
def _imports(root: Path) -> dict[str, frozenset[str]]:
    """Return the dotted names that each file of tests, of the core and of the pages imports."""
    found = {}
    for top in ("tests", "tfm_core", "pages"):
        for path in sorted((root / top).rglob("*.py")):
            names: set[str] = set()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
                elif isinstance(node, ast.Import):
                    names |= {one.name for one in node.names}
            found[str(path.relative_to(root))] = frozenset(names)
    return found


def nearest(root: Path, path: str) -> tuple[str, ...]:
    """Return the tests nearest to a module: its mirror, those that import it, its folder's.

    Then, where these are few, those that import what imports it, and last what all pages show.
    """
    every = _imports(root)
    tests = [name for name in every if re.search(r"^tests/(?!browser/).*test_\w+\.py$", name)]
    mirror, dotted = _mirror(path), _dotted(path)

    def far(test: str) -> tuple[int, int]:
        return -len(os.path.commonpath([test, mirror.parent])), len(every[test])

    near = [str(mirror)]
    near += sorted((name for name in tests if dotted in every[name]), key=far)
    users = {_dotted(name): name for name, names in every.items() if dotted in names}
    near += [str(_mirror(name)) for name in users.values()]
    if path.startswith("pages"):
        near.append("tests/pages/test_shown.py")
    near += [name for name in tests if Path(name).parent == mirror.parent]
    near += sorted((name for name in tests if users.keys() & every[name]), key=far)
    found = [name for name in dict.fromkeys(near) if name in tests and name not in LAST]
    return (*found[:MAX_FILES], *LAST)


def _mirror(path: str) -> Path:
    place = Path("tests") / path.removeprefix("tfm_core/")
    return place.with_name(f"test_{place.name}")


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


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
        compileall.compile_dir(copy / top, quiet=2, rx=re.compile("recorded"),
                               invalidation_mode=mode)  # fmt: skip
    return copy


def _outcomes(copy: Path, mutants: Sequence[Mutant]) -> Iterator[str]:
    """Yield the test that noticed each mutant, as a process in the copy says it; else ""."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TFM_SEED": str(SEED),
                   "OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}  # fmt: skip
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
        for mutant in mutants:
            process.stdin.write(json.dumps(asdict(mutant)) + "\n")
            process.stdin.flush()
            killer = json.loads(process.stdout.readline())
            print(f"{mutant}: {killer or 'survived'}", file=sys.stderr, flush=True)
            yield killer
        process.stdin.close()

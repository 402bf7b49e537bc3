"""The size budget: lines, files and public names of each folder, and counts of shapes to avoid.

``budget.toml`` has the limits. A change may lower them or move lines from one folder to another;
sums and counts of shapes never rise. ``python -m tests.static.budget`` writes the current figures.
"""

from __future__ import annotations

import ast
import gc
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.static.imports import FLOOR, part
from tests.static.repository import ROOT, Repository, Source, Violation, repository

TABLE = "tests/static/budget.toml"
SLACK = 0.98
"""If a sum of lines falls below this share of its limit, the table must be written again."""
SHORT = 8
"""A function of at most so many lines, with its only caller in the same file, is counted."""
OUTSIDE = ("app.py", "pages", "tfm_core", "benchmarks")
MEASURES = ("lines", "files", "names")
Figures = dict[str, dict[str, float]]


def folders(checked: Repository) -> Figures:
    """Return lines, files and public names by folder, and their sums outside tests and in them."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for source in checked.python(*OUTSIDE, "tests"):
        is_test = source.path.startswith("tests/")
        size = {"lines": source.text.count("\n"), "files": 1, "names": _public_names(source)}
        for name in (_folder(source.path), "sum of tests" if is_test else "sum outside tests"):
            found[name].update(size)
    return {name: {each: found[name][each] for each in MEASURES} for name in sorted(found)}


def _folder(path: str) -> str:
    pieces = path.split("/")[:-1]
    return "/".join(pieces[: 1 if pieces[:1] == ["benchmarks"] else 2]) or "app.py"


def _public_names(source: Source) -> int:
    names: set[str] = set()
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return sum(not name.startswith("_") for name in names)


@dataclass
class _Uses:
    """How often names are read and called. at: the files that read each name."""

    read: Counter[str] = field(default_factory=Counter)
    called: Counter[str] = field(default_factory=Counter)
    at: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, sources: list[Source]) -> _Uses:
        """Count them in some files; a name in a string, such as a lazy one, is read, too."""
        uses = cls()
        for source in sources:
            for node in source.nodes:
                name = _name(node)
                if name is None and isinstance(node, ast.Constant) and isinstance(node.value, str):
                    name = node.value if node.value.isidentifier() else None
                if name is not None:
                    uses.read[name] += 1
                    uses.at[name].add(source.path)
                if isinstance(node, ast.Call):
                    uses.called[_name(node.func) or ""] += 1
        return uses


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def shapes(checked: Repository) -> dict[str, float]:
    """Count the shapes to avoid in the code outside tests."""
    sources = checked.python(*OUTSIDE)
    uses = _Uses.of(sources)
    classes = [
        node for each in sources for node in each.tree.body if isinstance(node, ast.ClassDef)
    ]
    records = [node.name for node in classes if _is_dataclass(node)]
    circles = _circles(_links(sources))
    lines = sum(source.text.count("\n") for source in sources)
    return {
        "dataclasses built in one place": sum(uses.called[name] == 1 for name in records),
        "short functions with one caller in their file": sum(
            uses.read[name] == 1 and uses.at[name] == {source.path}
            for source in sources
            for name in _short_functions(source)
        ),
        "class names twice": sum(n - 1 for n in Counter(node.name for node in classes).values()),
        "imports that point up": _upward(checked.core),
        "circles of imports": len(circles),
        "files in circles": sum(map(len, circles)),
        "lines without format": sum(source.text.count("# fmt: skip") for source in sources),
        "syntax nodes a line": round(sum(len(each.nodes) for each in sources) / max(lines, 1), 2),
    }


def _is_dataclass(node: ast.ClassDef) -> bool:
    names = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return any(_name(each) == "dataclass" for each in names)


def _short_functions(source: Source) -> Iterator[str]:
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
            if (node.end_lineno or 0) - first.lineno < SHORT:
                yield node.name


def _links(sources: list[Source]) -> dict[str, set[str]]:
    """Return what each module imports: in functions, for type checkers and by name, too."""
    modules = {source.module for source in sources}
    return {
        source.module: {
            name
            for name, _line in source.all_imports
            if name in modules and not f"{source.module}.".startswith(f"{name}.")
        }
        for source in sources
    }


def _upward(sources: list[Source]) -> int:
    """Return the pairs of a file and a part of the core at or above its own that it imports."""
    found = set()
    for source in sources:
        own = part(source.module)
        for name, _line in source.all_imports:
            other = part(name)
            if own and other and own != other and FLOOR.get(other, 99) >= FLOOR.get(own, 0):
                found.add((source.path, other))
    return len(found)


def _circles(links: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that reach each other (Tarjan 1972, with a stack of our own)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for start in links:
        work = [(start, iter(sorted(links[start])))] if start not in index else []
        while work:
            name, rest = work[-1]
            if name not in index:
                index[name] = low[name] = len(index)
                stack.append(name)
            for other in rest:
                if other not in index:
                    work.append((other, iter(sorted(links[other]))))
                    break
                if other in stack:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[name])
                if low[name] == index[name]:
                    group = set(stack[stack.index(name) :])
                    del stack[stack.index(name) :]
                    found += [group] if len(group) > 1 else []
    return found


def today(checked: Repository) -> Figures:
    """Return all figures of a checkout."""
    return {**folders(checked), "shapes": shapes(checked)}


def allowed(checked: Repository) -> Figures:
    """Return the figures of the table."""
    return tomllib.loads(checked.text(TABLE))


def nothing_grows(checked: Repository) -> Iterator[Violation]:
    """No folder, sum or count of a shape is above its limit."""
    table = allowed(checked)
    for row, figures in today(checked).items():
        for name, value in figures.items():
            most = table.get(row, {}).get(name, 0)
            if value > most:
                yield Violation(TABLE, 1, f"{row}: {value} {name}, but the budget is {most}")
            elif name == "lines" and row.startswith("sum") and value < SLACK * most:
                yield Violation(TABLE, 1, f"{row}: {value} lines; write the table again")


CHECKS = (nothing_grows,)


def written(figures: Figures) -> str:
    """Return a table as TOML."""
    lines = ["# Written by python -m tests.static.budget, which never raises a sum."]
    for row, values in figures.items():
        lines += ["", f'["{row}"]', *(f'"{name}" = {value}' for name, value in values.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the current figures, unless a sum or a shape has risen; return the exit code."""
    gc.disable()  # it would look through all syntax trees again and again
    checked = repository(ROOT)
    table, figures = allowed(checked), today(checked)
    fixed = [row for row in figures if row.startswith("sum") or row == "shapes"]
    risen = [
        f"{row}: {value} {name}, not more than {table[row][name]}"
        for row in fixed
        for name, value in figures[row].items()
        if value > table.get(row, {}).get(name, value)
    ]
    if not risen:
        Path(ROOT, TABLE).write_text(written(figures), encoding="utf-8")
    print(*risen or ["written"], sep="\n")
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())

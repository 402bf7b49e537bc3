"""The files of a checkout, each read and parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Violation:
    """A place in a file, and the rule that it breaks."""

    path: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


@dataclass(frozen=True, slots=True)
class Import:
    """An import of a module. at_once: it happens while the file is imported."""

    target: str
    line: int
    at_once: bool

    @property
    def package(self) -> str:
        """The distribution or package that has the module."""
        return self.target.partition(".")[0]


class Source:
    """A Python file. path: from the root, with slashes."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root, self.file = root, path
        self.path = path.relative_to(root).as_posix()
        parts = self.path.removesuffix(".py").split("/")
        self.module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def text(self) -> str:
        """What the file says."""
        return self.file.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its syntax tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def calls(self) -> list[ast.Call]:
        """All calls, with whatever they are in."""
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def imports(self) -> list[Import]:
        """All imports, in functions too, but none that only a type checker sees."""
        return list(self._imports(self.tree, at_once=True))

    def _imports(self, node: ast.AST, *, at_once: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, at_once) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                source = "." * child.level + (child.module or "")
                for alias in child.names:
                    yield Import(self._target(source, alias.name), child.lineno, at_once)
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                if is_for_type_checkers(child):
                    continue
                is_later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from self._imports(child, at_once=at_once and not is_later)

    @cached_property
    def all_imports(self) -> list[tuple[str, int]]:
        """All modules that the file names, and where: for type checkers and in functions, too."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [self._target(node.module, alias.name) for alias in node.names]
                found += [(name, node.lineno) for name in names]
        return found

    def _target(self, source: str, name: str) -> str:
        path = self.root.joinpath(*source.split("."), name)
        is_module = path.is_dir() or path.with_suffix(".py").is_file()
        return f"{source}.{name}" if is_module else source

    def violation(self, line: int, rule: str) -> Violation:
        """Return a violation in this file."""
        return Violation(self.path, line, rule)


def is_for_type_checkers(node: ast.AST) -> bool:
    """Return whether a statement is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


class Repository:
    """A checkout, or a small tree that a test makes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._sources: dict[Path, Source] = {}

    def python(self, *places: str) -> list[Source]:
        """Return the Python files of some folders or files, below them too."""
        paths = [
            path
            for place in places
            for path in (
                [self.root / place]
                if place.endswith(".py")
                else sorted((self.root / place).rglob("*.py"))
            )
            if path.is_file()
        ]
        return [self._sources.setdefault(path, Source(self.root, path)) for path in paths]

    @cached_property
    def core(self) -> list[Source]:
        """The files of ``tfm_core``."""
        return self.python("tfm_core")

    @cached_property
    def pages(self) -> list[Source]:
        """The files of ``pages``."""
        return self.python("pages")

    @cached_property
    def app(self) -> list[Source]:
        """All files of the app."""
        return [*self.python("app.py"), *self.pages, *self.core]

    def text(self, path: str) -> str:
        """Return what a file says; nothing where there is none."""
        file = self.root / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""


@cache
def repository(root: Path = ROOT) -> Repository:
    """Return a checkout; whoever asks for it again gets the files that were parsed."""
    return Repository(root)


def line_of(text: str, place: int) -> int:
    """Return the line of a place in a text."""
    return text.count("\n", 0, place) + 1

"""Which way imports point: pages to what they share, that to the core, and down inside the core."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MAY_IMPORT: dict[str, set[str]] = {  # part of tfm_core -> the parts below it
    "config": set(),
    "layers": set(),
    "presets": {"config"},
    "data": {"config"},
    "models": {"config", "layers"},
    "machine": set(),
    "architectures": {"config", "data"},
    "decoding": {"data", "models"},
    "training": {"config", "data", "models", "decoding"},
    "runs": {"config", "presets", "training"},
    "inspect": {
        "architectures",
        "config",
        "data",
        "layers",
        "models",
        "decoding",
        "training",
        "runs",
    },
    "plots": {"architectures", "config", "data", "training", "runs", "inspect"},
    "recorded": {"config", "presets", "training", "runs"},
    "cli": {"config", "presets", "data", "training", "runs"},
    "__main__": {"cli"},
}
WORKER = {"tfm_core.runs.execute": {"inspect"}}
"""A worker takes snapshots, so the module that works looks up; the modules that read must not."""

CORE = sorted((ROOT / "tfm_core").rglob("*.py"))
PAGES = sorted((ROOT / "pages").rglob("*.py"))


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Every module that a file imports, and whether that happens when the file is imported."""
    return tuple(_walk(ast.parse(path.read_text(encoding="utf-8")), True))


def _walk(node: ast.AST, at_once: bool) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_once) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            source = child.module or ""
            yield from ((_target(source, alias.name), at_once) for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        else:
            is_later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _walk(child, at_once and not is_later)


def _target(source: str, name: str) -> str:
    path = ROOT.joinpath(*source.split("."), name)
    is_module = path.is_dir() or path.with_suffix(".py").is_file()
    return f"{source}.{name}" if is_module else source


def part(name: str) -> str | None:
    pieces = name.split(".")
    return pieces[1] if pieces[0] == "tfm_core" and len(pieces) > 1 else None


@pytest.mark.parametrize("path", CORE, ids=module)
def test_core_imports_only_what_lies_below(path: Path) -> None:
    name = module(path)
    own = part(name)
    if own is None:
        return
    allowed = MAY_IMPORT[own] | WORKER.get(name, set()) | {own}
    above = {target for target, _ in imports(path) if part(target) not in allowed | {None}}
    assert not above, f"{name} must not import {sorted(above)}"


def test_layers_and_models_that_are_not_builders_know_no_config() -> None:
    for path in [*(ROOT / "tfm_core/models").glob("*.py")]:
        if not path.stem.startswith(("build", "__init__")):
            assert not [t for t, _ in imports(path) if part(t) == "config"], module(path)


@pytest.mark.parametrize("path", CORE, ids=module)
def test_core_never_imports_streamlit_or_pages(path: Path) -> None:
    roots = {target.split(".")[0] for target, _ in imports(path)}
    assert not roots & {"streamlit", "pages", "app"}


def test_core_modules_make_no_circle() -> None:
    known = {module(path): path for path in CORE}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name in done:
            return
        for target, at_once in imports(known[name]):
            if at_once and target in known and target != name:
                visit(target, (*trail, name))
        done.add(name)

    for name in known:
        visit(name, ())


@pytest.mark.parametrize("path", PAGES, ids=module)
def test_pages_import_no_page_and_no_torch(path: Path) -> None:
    shared = ("pages.ui", "pages.components")
    for target, _ in imports(path):
        assert target.split(".")[0] not in {"torch", "torchvision"}, f"{module(path)}: {target}"
        if target.startswith("pages.") and not target.startswith(shared):
            pytest.fail(f"{module(path)} imports the page {target}")


@pytest.mark.parametrize("path", PAGES, ids=module)
def test_only_shared_modules_know_session_state(path: Path) -> None:
    if path.relative_to(ROOT).parts[1] not in {"ui", "components"}:
        assert "session_state" not in path.read_text(encoding="utf-8")


def test_components_do_not_know_the_state_of_a_session() -> None:
    for path in (ROOT / "pages" / "components").glob("*.py"):
        assert not [t for t, _ in imports(path) if t in {"pages.ui.state", "pages.ui.show"}]

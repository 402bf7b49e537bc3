"""Which way imports point: pages to what they share, that to the core, and down inside the core."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[1]

ORDER = (  # each part of tfm_core may import those in the lines above its own, and itself
    ("languages",),
    ("korean", "sentences", "machine", "disk", "byte_cache"),
    ("spoken",),
    ("reading", "made_with"),
    ("stored",),
    ("variants",),
    ("layers",),
    ("mistakes",),
    ("config",),
    ("anatomy",),
    ("presets",),
    ("links",),
    ("data",),
    ("models",),
    ("facts", "decoding", "pretrained"),
    ("training",),
    ("probe",),
    ("runs",),
    ("doctor",),
    ("inspect",),
    ("lessons",),
    ("sweeps",),
    ("plots", "recorded"),
    ("export", "hosting"),
    ("looking",),
    ("cli",),
    ("__main__",),
)
FLOOR = {part: number for number, parts in enumerate(ORDER) for part in parts}

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


def test_core_imports_only_what_lies_below() -> None:
    for path in CORE:
        name = module(path)
        own = part(name)
        if own is None:
            continue
        for target, _ in imports(path):
            other = part(target)
            if other not in (None, own):
                assert FLOOR[other] < FLOOR[own], f"{name} must not import {target}"


def test_hosting_is_loaded_by_name_and_pages_import_only_what_they_publish() -> None:
    for path in [ROOT / "app.py", *CORE, *PAGES]:
        hosted = [t for t, _ in imports(path) if part(t) == "hosting"]
        if part(module(path)) != "hosting":
            assert all(t.startswith("tfm_core.hosting.published.") for t in hosted), module(path)
            assert not hosted or path not in CORE, module(path)


def test_layers_and_models_that_are_not_builders_know_no_config() -> None:
    for path in [*(ROOT / "tfm_core/models").glob("*.py")]:
        if not path.stem.startswith(("build", "__init__")):
            assert not [t for t, _ in imports(path) if part(t) == "config"], module(path)


def test_core_never_imports_streamlit_or_pages() -> None:
    for path in CORE:
        roots = {target.split(".")[0] for target, _ in imports(path)}
        assert not roots & {"streamlit", "pages", "app"}, module(path)


LATE = {"torch", "optuna", "pandas"}
"""Packages that a server's threads load when something first asks for them."""


def test_what_threads_load_late_is_loaded_from_its_top() -> None:
    """Of two threads, one of which loads ``x`` and one ``x.y``, each waits for what the other has.

    Python cuts that knot with half a module, which stays for as long as the server lives; whoever
    loads ``x`` first just waits.
    """
    for path in [ROOT / "app.py", *CORE, *PAGES]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_once = _loads(tree.body)
        inside = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for names in [at_once, *([*at_once, *_loads(node.body)] for node in inside)]:
            for name in names:
                package = name.split(".")[0]
                first = next(n for n in names if n.split(".")[0] == package)
                assert package not in LATE or first == package, f"{module(path)} loads {first}"


def _loads(body: list[ast.stmt]) -> list[str]:
    """The modules that lines load as they run, in order, without what functions in them load."""
    found: list[str] = []
    for node in body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            inner = (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))
            found += _loads([line for lines in inner for line in lines])
    return found


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


def test_pages_import_no_torch_at_all() -> None:
    for path in PAGES:
        for target, _ in imports(path):
            assert target.split(".")[0] not in {"torch", "torchvision"}, f"{module(path)}: {target}"


INTERNALS = "pages.server.streamlit_internals"
"""It imports nothing of ours, so every page may import it."""


def test_one_module_knows_the_internals_of_streamlit() -> None:
    internals = ("streamlit.runtime", "streamlit.web", "streamlit.proto", "streamlit.net_util")
    for path in [ROOT / "app.py", *PAGES]:
        targets = [target for target, _ in imports(path)]
        if module(path) == INTERNALS:
            assert not [target for target in targets if target.startswith(("pages", "tfm_core"))]
        else:
            assert not [t for t in targets if t.startswith(internals)], module(path)


def test_no_page_package_imports_another_and_what_they_share_imports_none() -> None:
    for path in PAGES:
        own = path.relative_to(ROOT).parts[1]
        shared = {"pages", "ui", "components", "i18n"}
        may = {
            "ui": {"ui", "components", "i18n"},
            "components": {"components", "i18n"},
            "server": {"server", "ui", "components", "i18n"},
        }
        for target, _ in imports(path):
            if target.startswith("pages.") and target != INTERNALS:
                other = target.split(".")[1]
                allowed = may.get(own, shared | {own})
                assert other in allowed, f"{module(path)} must not import {target}"


def test_only_shared_modules_know_session_state() -> None:
    for path in PAGES:
        if path.name == "page.py":
            assert "session_state" not in path.read_text(encoding="utf-8"), module(path)


def test_components_do_not_know_the_state_of_a_session() -> None:
    for path in (ROOT / "pages" / "components").glob("*.py"):
        assert not [t for t, _ in imports(path) if t in {"pages.ui.state", "pages.ui.show"}]


def test_one_module_keeps_views_in_the_address_and_few_touch_it_at_all() -> None:
    may = {
        "pages.ui.address.view_link",  # views
        "pages.ui.address.url_config",  # the configuration
        "pages.ui.state",  # the current run, and the whole address to copy
        "pages.i18n",  # the language, which lies below what pages share
    }
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert module(path) in may or "st.query_params" not in text, module(path)
        assert 'bind="query-params"' not in text, module(path)

"""Which way imports point: pages to what they share, that to the core, and down inside the core."""

import ast
from collections.abc import Iterator

from tests.static.repository import Repository, Source, Violation, is_for_type_checkers

ORDER = (  # each part of tfm_core may import those in the lines above its own, and itself
    ("languages",),
    ("korean", "sentences", "machine", "disk", "byte_cache", "background"),
    ("spoken",),
    ("reading", "made_with", "settings"),
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
    ("trace",),
    ("studies",),
    ("lessons",),
    ("sweeps",),
    ("plots", "recorded"),
    ("export",),
    ("looking",),
    ("cli",),
    ("__main__",),
)
FLOOR = {part: number for number, parts in enumerate(ORDER) for part in parts}
PLACES = {"compare", "learn", "look_inside", "train", "try_it"}
"""Folders of pages that have a package each, and may share what lies beside them."""
INTERNALS = "pages.server.streamlit_internals"
"""It imports nothing of ours, so every page may import it."""
LATE = {"torch", "optuna", "pandas"}
"""Packages that a server's threads load when something first asks for them."""
IN_THE_ADDRESS = {
    "pages.app.address.view",  # views
    "pages.app.settings.drafts",  # the configuration
    "pages.app.state",  # the current run, and the whole address to copy
    "pages.i18n",  # the language, which lies below what pages share
}


def part(name: str) -> str | None:
    """Return the part of the core that has a module."""
    pieces = [piece for piece in name.split(".") if piece != "choices"]
    return pieces[1] if pieces[0] == "tfm_core" and len(pieces) > 1 else None


def imports_are_absolute(repository: Repository) -> Iterator[Violation]:
    """Imports of the app are absolute."""
    for source in repository.app:
        for each in source.imports:
            if each.target.startswith("."):
                yield source.violation(each.line, "imports are absolute")


def core_imports_what_lies_below(repository: Repository) -> Iterator[Violation]:
    """Parts of the core import those below them only, and neither Streamlit nor pages."""
    for source in repository.core:
        own = part(source.module)
        if own is not None and own not in FLOOR:
            yield source.violation(1, f"the order of imports has no place for tfm_core.{own}")
            continue
        for each in source.imports:
            other = part(each.target)
            if each.package in {"streamlit", "pages", "app"}:
                yield source.violation(each.line, f"the core must not import {each.target}")
            elif own and other and own != other and FLOOR.get(other, -1) >= FLOOR[own]:
                yield source.violation(each.line, f"{own} must not import {each.target}")


def builders_alone_know_configs(repository: Repository) -> Iterator[Violation]:
    """Layers and models take values; what builds models reads configs."""
    for source in repository.core:
        folder, _slash, name = source.path.rpartition("/")
        if folder == "tfm_core/models" and not name.startswith(("build", "__init__")):
            for each in source.imports:
                if part(each.target) == "config":
                    yield source.violation(each.line, "only builders of models read configs")


def late_packages_are_loaded_from_their_top(repository: Repository) -> Iterator[Violation]:
    """Import ``x`` before ``x.y`` where threads may do so at once.

    Of two threads, one of which loads ``x`` and one ``x.y``, each waits for what the other has.
    Python cuts that knot with half a module, which stays for as long as the server lives; whoever
    loads ``x`` first just waits.
    """
    for source in repository.app:
        at_once = _loads(source.tree.body)
        inside = [node for node in source.nodes if isinstance(node, ast.FunctionDef)]
        found = set()
        for loads in [at_once, *([*at_once, *_loads(node.body)] for node in inside)]:
            first: dict[str, tuple[str, int]] = {}
            for name, line in loads:
                first.setdefault(name.split(".")[0], (name, line))
            found |= {first[name] for name in LATE & first.keys() if first[name][0] != name}
        for name, line in sorted(found):
            yield source.violation(line, f"load {name.split('.')[0]} before {name}")


def _loads(body: list[ast.stmt]) -> list[tuple[str, int]]:
    """Return the modules that lines load as they run, in order, without those of functions."""
    found: list[tuple[str, int]] = []
    for node in body:
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "", node.lineno))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if is_for_type_checkers(node):
                continue
            inner = (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))
            found += _loads([line for lines in inner for line in lines])
    return found


def core_makes_no_circle(repository: Repository) -> Iterator[Violation]:
    """No modules of the core import each other in a circle as they are imported."""
    known = {source.module: source for source in repository.core}
    done: set[str] = set()

    def visit(source: Source, trail: tuple[str, ...]) -> Iterator[Violation]:
        trail = (*trail, source.module)
        for each in source.imports:
            if each.at_once and each.target in trail[:-1]:
                circle = " -> ".join((*trail[trail.index(each.target) :], each.target))
                yield source.violation(each.line, f"imports in a circle: {circle}")
            elif each.at_once and each.target in known and each.target not in {*done, trail[-1]}:
                yield from visit(known[each.target], trail)
        done.add(source.module)

    for source in known.values():
        if source.module not in done:
            yield from visit(source, ())


def pages_import_no_torch(repository: Repository) -> Iterator[Violation]:
    """Pages import no torch, in functions neither."""
    for source in repository.pages:
        for each in source.imports:
            if each.package in {"torch", "torchvision"}:
                yield source.violation(each.line, f"pages must not import {each.target}")


def one_module_knows_the_internals_of_streamlit(repository: Repository) -> Iterator[Violation]:
    """What may change in any release of Streamlit is used in one module, which imports no other."""
    internals = ("streamlit.runtime", "streamlit.web", "streamlit.proto", "streamlit.net_util")
    for source in [*repository.python("app.py"), *repository.pages]:
        for each in source.imports:
            if source.module == INTERNALS:
                if each.package in {"pages", "tfm_core"}:
                    yield source.violation(each.line, "this module imports nothing of ours")
            elif each.target.startswith(internals):
                yield source.violation(each.line, f"{INTERNALS} alone may import {each.target}")


def pages_are_separate(repository: Repository) -> Iterator[Violation]:
    """No page's package imports another, and what they share imports none of them."""
    may = {
        "app": {"app", "components", "i18n"},
        "components": {"components", "i18n"},
        "server": {"server", "app", "components", "i18n"},
    }
    for source in repository.pages:
        own = _package(source.module)
        allowed = may.get(own, {"pages", "app", "components", "i18n", own, own.split(".")[0]})
        for each in source.imports:
            is_page = each.target.startswith("pages.") and each.target != INTERNALS
            if is_page and _package(each.target) not in allowed:
                yield source.violation(each.line, f"{own} must not import {each.target}")


def _package(module: str) -> str:
    """Return the package of a page, below its place, or of what pages share."""
    parts = module.split(".")[1:]
    is_page = len(parts) > 2 and parts[0] in PLACES
    return ".".join(parts[: 2 if is_page else 1])


def components_know_no_session(repository: Repository) -> Iterator[Violation]:
    """Components do not know the state of a session."""
    for source in repository.python("pages/components"):
        for each in source.imports:
            if each.target in {"pages.app.state", "pages.app.show"}:
                yield source.violation(each.line, f"components must not import {each.target}")


def one_module_keeps_views_in_the_address(repository: Repository) -> Iterator[Violation]:
    """Few modules touch the address, and no widget is bound to it."""
    for source in repository.pages:
        if source.module not in IN_THE_ADDRESS:
            yield from _has(source, "st.query_params", "pages keep views by pages.app.address")
        yield from _has(source, 'bind="query-params"', "pages keep views by pages.app.address")


def shared_modules_alone_know_session_state(repository: Repository) -> Iterator[Violation]:
    """The script of a page does not use ``st.session_state``."""
    for source in repository.pages:
        if source.path.endswith("/page.py"):
            yield from _has(source, "session_state", "a page keeps its state by what pages share")


def _has(source: Source, words: str, rule: str) -> Iterator[Violation]:
    if words in source.text:
        for number, line in enumerate(source.text.splitlines(), 1):
            if words in line:
                yield source.violation(number, rule)


CHECKS = (
    imports_are_absolute,
    core_imports_what_lies_below,
    builders_alone_know_configs,
    late_packages_are_loaded_from_their_top,
    core_makes_no_circle,
    pages_import_no_torch,
    one_module_knows_the_internals_of_streamlit,
    pages_are_separate,
    components_know_no_session,
    one_module_keeps_views_in_the_address,
    shared_modules_alone_know_session_state,
)

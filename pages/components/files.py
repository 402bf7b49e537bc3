"""The scripts and style sheets of the components.

The scripts are ES modules, but Streamlit takes a component's script as one text without relative
imports. So an entry and its modules are bundled here, each module once in its own scope.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(
    r"""^import\ (?:(?P<default>\w+)|\{(?P<names>[^}]*)\})\ from\ "\./(?P<file>\w+\.js)";\n""",
    re.M | re.X,
)
_EXPORT = re.compile(r"^export (?P<kind>(?:async )?function|const|class) (?P<name>\w+)", re.M)
_REBUILT = "rebuilt.js"
_DEFAULT = re.compile(r"^export default function ?\(", re.M)


def joined(*names: str) -> str:
    return "".join((FOLDER / name).read_text(encoding="utf-8") for name in names)


def bundled(entry: str, folder: Path = FOLDER) -> str:
    """Return a module with all its imports as one script.

    The entry keeps its default export, which begins anew in another language. Raises ValueError for
    an import that is not understood, for a name that the other module does not export, and for
    modules that import each other in a circle.
    """
    order: list[str] = []
    _visit(entry, folder, order, ())
    parts = [_scope(name, folder) for name in order[:-1]]
    code = _EXPORT.sub(r"\g<kind> \g<name>", _imported(entry, folder))
    if _DEFAULT.search(code):
        parts.append(_scope(_REBUILT, FOLDER))
        code = _DEFAULT.sub("function entry_(", code)
        code += f"export default (given) => {_variable(_REBUILT)}.rebuilt(entry_, given);\n"
    return "".join([*parts, code])


def exports(name: str, folder: Path = FOLDER) -> list[str]:
    code = (folder / name).read_text(encoding="utf-8")
    names = [found["name"] for found in _EXPORT.finditer(code)]
    return [*names, "default"] if _DEFAULT.search(code) else names


def _visit(name: str, folder: Path, order: list[str], trail: tuple[str, ...]) -> None:
    if name in trail:
        raise ValueError(f"Scripts import each other in a circle: {' -> '.join((*trail, name))}.")
    if name in order:
        return
    for found in _IMPORT.finditer((folder / name).read_text(encoding="utf-8")):
        _visit(found["file"], folder, order, (*trail, name))
    order.append(name)


def _scope(name: str, folder: Path) -> str:
    code = _EXPORT.sub(r"\g<kind> \g<name>", _imported(name, folder))
    code = _DEFAULT.sub("function default_(", code)
    given = ", ".join(
        "default: default_" if exported == "default" else exported
        for exported in exports(name, folder)
    )
    return f"const {_variable(name)} = (() => {{\n{code}\nreturn {{ {given} }};\n}})();\n\n"


def _imported(name: str, folder: Path) -> str:
    """Return the code of a module with imports turned into constants."""

    def constant(found: re.Match[str]) -> str:
        wanted = [part.strip() for part in (found["names"] or "default").split(",") if part.strip()]
        lacking = set(wanted) - set(exports(found["file"], folder))
        if lacking:
            raise ValueError(f"{found['file']} does not export {', '.join(sorted(lacking))}.")
        if found["default"]:
            return f"const {found['default']} = {_variable(found['file'])}.default;\n"
        return f"const {{ {', '.join(wanted)} }} = {_variable(found['file'])};\n"

    code = _IMPORT.sub(constant, (folder / name).read_text(encoding="utf-8"))
    left = re.search(r"^import\s.*", code, re.M)
    if left:
        raise ValueError(f"An import of {name} is not understood: {left[0]}")
    return code


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"

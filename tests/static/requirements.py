"""Every direct import is declared where the README installs it from; every pin is allowed."""

import sys
from collections.abc import Iterator

from packaging.requirements import Requirement

from tests.static.repository import Repository, Violation

OURS = {"app", "pages", "tfm_core", "tests", "benchmarks", "_typeshed", ""}
DISTRIBUTION = {
    "PIL": "pillow",
    "_plotly_utils": "plotly",
    "axe_playwright_python": "axe-playwright-python",
    "onnx_ir": "onnx-ir",
    "pydantic_core": "pydantic",
    "pydantic_settings": "pydantic-settings",
    "xdist": "pytest-xdist",
    "yaml": "pyyaml",
    "vit_pytorch": "vit-pytorch",
}
"""What brings a module that has another name."""
THROUGH_ANOTHER = {"onnxscript"}
"""What PyTorch's ONNX exporter imports for us."""
OPTIONAL = {
    "ray": "requirements-cluster.txt",
    "huggingface_hub": "requirements-hub.txt",
    "transformers": "requirements-bench.txt",
}
"""What is imported only where it is installed, and the file that installs it."""
BROUGHT_ALONG = {"requests", "authlib"}
"""What Ray's client asks with, and what Streamlit logs people in with."""
COMPARED_WITH = {"transformers"}
"""What tests compare with where it is installed; the app never imports it."""
DECLARED = {
    "requirements.txt": ("app.py", "pages", "tfm_core"),
    "requirements-dev.txt": ("tests",),
    "requirements-bench.txt": ("benchmarks",),
}
"""Files of requirements, and the folders whose imports they declare."""


def declared(repository: Repository, file: str) -> dict[str, tuple[Requirement, str, int]]:
    """Return the requirements of a file, and of those that it includes, by name with their line."""
    found: dict[str, tuple[Requirement, str, int]] = {}
    for number, line in enumerate(repository.text(file).splitlines(), 1):
        if line.startswith("-r "):
            found |= declared(repository, line.removeprefix("-r "))
        elif line and not line.startswith("#"):
            requirement = Requirement(line)
            found[requirement.name] = (requirement, file, number)
    return found


def imported(repository: Repository, *places: str) -> dict[str, tuple[str, int]]:
    """Return the distributions that the files of some folders import, each with one place."""
    found: dict[str, tuple[str, int]] = {}
    for source in repository.python(*places):
        for each in source.imports:
            if each.package not in OURS | sys.stdlib_module_names:
                name = DISTRIBUTION.get(each.package, each.package)
                found.setdefault(name, (source.path, each.line))
    return found


def every_import_is_declared(repository: Repository) -> Iterator[Violation]:
    """Direct imports are declared, in functions too; the app declares only what it imports."""
    for file, places in DECLARED.items():
        there = declared(repository, file)
        optional = OPTIONAL.keys() | BROUGHT_ALONG
        optional = (
            optional | COMPARED_WITH if file != "requirements.txt" else optional - COMPARED_WITH
        )
        found = imported(repository, *places)
        for name in sorted(found.keys() - there.keys() - optional):
            yield Violation(*found[name], f"{name} is not declared in {file}")
        if file == "requirements.txt":
            for name in sorted(there.keys() - found.keys() - THROUGH_ANOTHER):
                _requirement, where, line = there[name]
                yield Violation(where, line, f"the app never imports {name}")


def optional_packages_are_declared(repository: Repository) -> Iterator[Violation]:
    """What is optional has a file that installs it."""
    for name, file in OPTIONAL.items():
        if name not in declared(repository, file):
            yield Violation(file, 1, f"it does not declare {name}")


def light_requirements_are_some_of_all(repository: Repository) -> Iterator[Violation]:
    """The light requirements say of each package what the whole ones say."""
    whole = declared(repository, "requirements.txt")
    for name, (light, file, line) in declared(repository, "requirements-light.txt").items():
        if name not in whole or whole[name][0] != light:
            yield Violation(file, line, f"requirements.txt says something else of {name}")


def every_pin_is_allowed(repository: Repository) -> Iterator[Violation]:
    """Each direct requirement has a pin, and its version is one that the requirement allows."""
    pins = declared(repository, "constraints.txt")
    for name, (requirement, file, line) in declared(repository, "requirements-dev.txt").items():
        if name not in pins:
            yield Violation(file, line, f"constraints.txt does not pin {name}")
            continue
        pin, where, number = pins[name]
        versions = [one.version for one in pin.specifier if one.operator == "=="]
        if len(versions) != 1 or not requirement.specifier.contains(versions[0]):
            yield Violation(where, number, f"{requirement} does not allow {pin}")


CHECKS = (
    every_import_is_declared,
    optional_packages_are_declared,
    light_requirements_are_some_of_all,
    every_pin_is_allowed,
)

"""What documents name is there: files, variables and tests."""

import ast
import re
from collections.abc import Iterator

from tests.static.repository import Repository, Violation, line_of

GUIDES = ("CONTRIBUTING.md", "README.md", "docs/architecture.md", "docs/cli.md")
NAMED = re.compile(r"`((?:tfm_core|pages|tests|benchmarks|\.ci)/[\w./-]*|\w+\.(?:txt|toml|md|py))`")
BARE = {"page.py"}
"""Files that a guide names in a folder which it has just named."""
DEPLOYMENT = (
    "Dockerfile",
    "compose.yaml",
    "docs/deploy.md",
    "docs/cli.md",
)
SECURITY = "docs/security.md"
SETTINGS = "tfm_core/settings"
"""The folder that alone reads the environment's settings."""


def files_that_guides_name_are_there(repository: Repository) -> Iterator[Violation]:
    """Every file and folder that a guide names is there."""
    for guide in GUIDES:
        text, root = repository.text(guide), repository.root
        named = list(NAMED.finditer(text))
        folders = [root, *(root / found[1] for found in named if found[1].endswith("/"))]
        for found in named:
            if found[1] not in BARE and not any((each / found[1]).exists() for each in folders):
                yield Violation(guide, line_of(text, found.start()), f"there is no {found[1]}")


def variables_of_deployment_are_settings(repository: Repository) -> Iterator[Violation]:
    """Every variable that a page about deployment names is in the list of settings."""
    listed = set(re.findall(r"^\| `(TFM_[A-Z_]+)`", repository.text("docs/settings.md"), re.M))
    for name in DEPLOYMENT:
        text = repository.text(name)
        for found in re.finditer(r"\bTFM_[A-Z_]+\b", text):
            if found[0] not in listed:
                line = line_of(text, found.start())
                yield Violation(name, line, f"docs/settings.md does not list {found[0]}")


def image_gets_what_it_copies(repository: Repository) -> Iterator[Violation]:
    """The image's context lets in exactly what the image copies, and that is there."""
    lines = repository.text("Dockerfile").splitlines()
    copied = {
        name: number
        for number, line in enumerate(lines, 1)
        if line.startswith("COPY ")
        for name in line.split()[1:-1]
    }
    let_in = {
        line[1:]: number
        for number, line in enumerate(repository.text(".dockerignore").splitlines(), 1)
        if line.startswith("!")
    }
    for name, line in copied.items():
        if name not in let_in:
            yield Violation("Dockerfile", line, f".dockerignore leaves out {name}")
        if not (repository.root / name).exists():
            yield Violation("Dockerfile", line, f"there is no {name}")
    for name in let_in.keys() - copied.keys():
        yield Violation(".dockerignore", let_in[name], f"the Dockerfile does not copy {name}")
    for name in {"app.py", "pages", "tfm_core", ".streamlit", "requirements.txt"} - copied.keys():
        yield Violation("Dockerfile", 1, f"it does not copy {name}")


def promises_name_tests_that_are_there(repository: Repository) -> Iterator[Violation]:
    """Every promise names what tests it, and that is there."""
    text, functions = repository.text(SECURITY), dict[str, set[str]]()
    for number, line in enumerate(text.splitlines(), 1):
        is_promise = line.startswith("| ") and not line.startswith("| promise |")
        if is_promise and not re.search(r"`tests/[\w/]+\.py(::\w+)?`", line):
            yield Violation(SECURITY, number, "this promise names no test")
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line):
            if file not in functions:
                nodes = [node for each in repository.python(file) for node in each.tree.body]
                functions[file] = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
            if name not in functions[file]:
                yield Violation(SECURITY, number, f"there is no {file}::{name}")


def settings_are_read_in_one_place(repository: Repository) -> Iterator[Violation]:
    """No module but those of settings reads a setting from the environment."""
    listed = {
        f"TFM_{field.target.id.upper()}"
        for source in repository.python(SETTINGS)
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and node.name == "Settings"
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    for source in repository.app:
        if source.path.rpartition("/")[0] != SETTINGS:
            for found in re.finditer(r"environ\S*?[\"'](TFM_\w+)", source.text):
                if found[1] in listed:
                    line = line_of(source.text, found.start())
                    yield source.violation(line, f"{SETTINGS} reads {found[1]}")


CHANGES = re.compile(
    r"(?<!actions)\.(request|rename|delete|undelete|fork|create)\(|queue\(\)\.(resume|submit)"
)
LISTS = re.compile(r"(?<!sweep_)store\(\)\.list\(\)")
MAY_CHANGE = {
    "pages/app/runs/run_actions.py",
    "pages/compare/sweeps/actions.py",  # trials are runs as all others
    "pages/teach/classroom.py",  # only the host may
}
MAY_LIST = {
    "visitors.py",
    "live.py",  # counts what trains, and names none of it
    "speed.py",  # too
    "preload.py",  # reads ahead
}


def runs_are_changed_where_someone_asks_who_may(repository: Repository) -> Iterator[Violation]:
    """Pages change runs through their actions, and list them through ``visitors``."""
    for source in repository.pages:
        for pattern, is_allowed in (
            (CHANGES, source.path in MAY_CHANGE),
            (LISTS, source.file.name in MAY_LIST),
        ):
            for found in () if is_allowed else pattern.finditer(source.text):
                line = line_of(source.text, found.start())
                yield source.violation(line, f"{found[0]} asks nobody who may")


def marks_stand_on_tests(repository: Repository) -> Iterator[Violation]:
    """A mark stands on a test or a class of tests: on any other function it does nothing."""
    for source in repository.python("tests"):
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("test"):
                for decorator in node.decorator_list:
                    if "pytest.mark." in ast.unparse(decorator):
                        rule = f"{node.name} is no test and takes no mark"
                        yield source.violation(node.lineno, rule)


CHECKS = (
    files_that_guides_name_are_there,
    variables_of_deployment_are_settings,
    image_gets_what_it_copies,
    promises_name_tests_that_are_there,
    settings_are_read_in_one_place,
    runs_are_changed_where_someone_asks_who_may,
    marks_stand_on_tests,
)

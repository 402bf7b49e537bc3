"""Commands and Python of the documents do what is said of them, and numbers are counted.

Blocks of code are found in the Markdown, so a new one is tested by itself. What installs something,
serves, or needs a network is in ``NOT_RUN``: its options are parsed, and its files are there.
"""

import ast
import re
import shlex
import sys
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import yaml
from streamlit.web.cli import main_run

import tfm_core
from benchmarks.__main__ import _parser as parser_of_benchmarks
from pages import publish
from tests import translation
from tests.export.exported import small, untrained
from tests.lessons.made import record
from tests.lessons.test_results import ANN
from tests.looking.loops import Writer, probe
from tests.runs.waiting import tiny
from tests.static.repository import ROOT
from tfm_core import cli
from tfm_core.choices.presets import PRESETS
from tfm_core.lessons import catalogue, results
from tfm_core.lessons.lesson import read
from tfm_core.lessons.task import Verdict
from tfm_core.recorded.build import RECORDINGS
from tfm_core.runs import RunStore

DOCUMENTS = [ROOT / "README.md", ROOT / "README.ko.md", *sorted((ROOT / "docs").glob("*.md"))]
START = re.compile(
    r"^(?:python -m [\w.]+|pip|pytest|streamlit|docker|uvx|ray|[A-Z_]+=\S+ \w+) ", re.M
)
NOT_RUN = {
    "pip install": "it installs",
    "pip wheel": "tests/test_wheel.py builds it",
    "uvx": "it needs a wheel and a network",
    "streamlit run": "it serves until it is stopped",
    "pytest": "it would run itself",
    "docker": "it needs images of a network",
    "ray start": "it starts a cluster",
    "python -m benchmarks": "it takes hours",
    "python -m tests.translation": "it writes the catalogues of this checkout",
}
DEAR = {"--onnx", "--recorded"}
LESSON = "smallest-model"
SNAPSHOT = "tfm_core/recorded/runs/recorded-korean/snapshots/*.safetensors"
OWN = """
from types import SimpleNamespace
import torch
import tfm_core
from tests.looking.loops import Writer, named, probe
from tests.runs.waiting import tiny
from tfm_core.training.loop import build

model, ids = Writer(), probe()
words = named(ids)
loader = [(ids, ids)] * 3
loss = validation_loss = torch.tensor(0.5)
accuracy = validation_accuracy = 0.75
rate = 0.01
answers, truth = lambda model: ["a b", "b c"], ["a b", "b c"]
c = SimpleNamespace(ServerProxy=SimpleNamespace())
"""
"""Stand-ins for what readers bring: a model, a loop, figures."""
OF_TWO_STACKS = """
model = build(tiny()).model
src = tgt_in = torch.tensor([[3, 4, 5]])
"""


class Block(NamedTuple):
    """A block of code, below a heading. place: its document, and which one it is there."""

    place: str
    heading: str
    language: str
    text: str


def blocks(path: Path) -> list[Block]:
    found, heading = [], ""
    prose, *rest = re.split(r"^```", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for fenced, after in zip(rest[::2], rest[1::2], strict=True):
        heading = [heading, *re.findall(r"^#+ (.+)$", prose, re.MULTILINE)][-1]
        language, _newline, text = fenced.partition("\n")
        found.append(Block(f"{path.name}:{len(found) + 1}", heading, language, text))
        prose = after
    return found


BLOCKS = [block for path in DOCUMENTS for block in blocks(path)]
PYTHON = {ast.dump(ast.parse(one.text)): one for one in BLOCKS[::-1] if one.language == "python"}


def commands() -> dict[str, list[str]]:
    """The words of each command, of blocks and of what stands between backquotes."""
    texts = [block.text for block in BLOCKS if block.language == "sh"]
    for path in DOCUMENTS:
        prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
        spans = (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose))
        texts += [span for span in spans if START.match(span)]
    lines = "\n".join(texts).replace("\\\n", " ").replace(" && ", "\n").splitlines()
    found = (shlex.split(line, comments=True) for line in lines)
    return {shlex.join(words): words for words in found if words}


COMMANDS = commands()


def is_run(command: str) -> bool:
    plain = re.sub(r"^([A-Z_]+=\S+ )+", "", command)
    return not any(plain.startswith(start) for start in NOT_RUN)


def test_commands_are_marked_as_such_and_files_of_settings_can_be_read() -> None:
    for block in BLOCKS:
        assert block.language or not START.search(block.text), block
        if block.language == "toml":
            tomllib.loads(block.text)


def test_the_lists_of_the_changelog_are_whole() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^(?!#).+\n\n- .*", changes, re.MULTILINE) == []
    for version in changes.split("\n## ")[1:]:
        parts = re.findall(r"^### (.+)", version, re.MULTILINE)
        assert len(set(parts)) == len(parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What commands name: a finished run and a stopped one, their files, a lesson, its results."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "lessons").mkdir()
    of_lessons = [one for one in BLOCKS if one.place.startswith("lessons.md")]
    for block in [one for one in of_lessons if one.heading == "Write one"][:2]:
        ending = "toml" if block.language == "toml" else "md"
        for place in (folder, folder / "lessons"):
            (place / f"{LESSON}.{ending}").write_text(block.text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, folder)
        for name in ("finished", "stopped"):
            RunStore().rename(untrained(RunStore(), small(PRESETS["addition"].experiment)).id, name)
        finished = ids()["finished"]
        assert cli.main(["resume", finished, "--quiet"]) == 0
        assert cli.main(["export", finished, "--out", "exported.zip"]) == 0
        assert cli.main(["export", finished, "--hugging-face", "--out", "folder.zip"]) == 0
        with zipfile.ZipFile("folder.zip") as file:
            file.extractall("opened")
        tfm_core.look(Writer(), probe()).save("look.safetensors")
        answer = record(LESSON, ANN, "smallest", answer="8", verdict=Verdict(True, ""))
        lesson = read(folder / f"{LESSON}.toml")
        line = results.line(lesson, answer, store=RunStore(), key=results.server_key())
        Path("results.txt").write_text(line, encoding="utf-8")
    return folder


def settle(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.chdir(folder)
    for name in ("runs", "data", "lessons"):
        patch.setenv(f"TFM_{name.upper()}_DIR", str(folder / name))


def ids() -> dict[str, str]:
    return {run.meta.name: run.id for run in RunStore(recorded=None).list()}


def filled(words: list[str]) -> list[str]:
    """The words of a command, with stand-ins for what readers bring; a training is short."""
    run = ids()["stopped" if "resume" in words else "finished"]
    known = {
        "ID": LESSON if "scorm" in words else run,
        "FILE": "look.safetensors",
        "FILE.zip": "exported.zip",
        "FILE.toml": f"{LESSON}.toml",
        "FOLDER": "site",
        "PATH": "opened",
        "2000": "5",
        "/srv/watch/index.html": "index.html",
    }
    short = ["--set", "training.steps=2"] if "train" in words else []
    return [known.get(word, word) for word in words] + short


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(name, marks=pytest.mark.wide if DEAR & set(words) else [])
        for name, words in COMMANDS.items()
        if is_run(name)
    ],
)
def test_a_command_is_accepted(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, folder)
    python, _option, module, *words = COMMANDS[command]
    main = {"tfm_core": cli.main, "pages.publish": publish.main}[module]
    assert python == "python"
    assert main(filled(words)) == 0


@pytest.mark.parametrize("command", [name for name in COMMANDS if not is_run(name)])
def test_a_command_that_is_not_run_can_be_read_and_its_files_are_there(
    command: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    match [word for word in COMMANDS[command] if not re.match("[A-Z_]+=", word)]:
        case ["pip", "install", *words]:
            assert set(words[::2]) <= {"-r", "-c"}
        case ["streamlit", "run", *words]:
            main_run.make_context("run", words)
        case ["pytest", *words]:
            pytestconfig._parser.parse(words)
        case ["python", "-m", "benchmarks", *words]:
            parser_of_benchmarks().parse_args(words)
        case ["python", "-m", "tests.translation", *words]:
            for name in ("update", "compile_catalogue", "split", "merge", "problems", "count"):
                monkeypatch.setattr(translation, name, lambda *_words: {})
            assert translation.main(words) == 0
        case ["uvx", "--from", wheel, _script]:
            assert wheel.startswith(f"./watch_a_transformer_learn-{tfm_core.__version__}-")
    for name in re.findall(r"[\w.-]+\.(?:txt|py|toml|yaml)\b", command):
        assert (ROOT / name).is_file(), name


def test_containers_write_where_they_may_and_others_images_are_pinned() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    owned = set(re.findall(r"chown app:app (.+)", dockerfile)[0].split())
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    for name, service in services.items():
        if "build" not in service:
            assert re.search(r":\d+\.\d+", service["image"]), name
            continue
        assert {volume.split(":")[1] for volume in service["volumes"]} <= owned, name
        serves_app = "command" not in service
        assert service.get("healthcheck", {}).get("disable", False) != serves_app, name


@pytest.mark.parametrize("block", PYTHON.values(), ids=[one.place for one in PYTHON.values()])
def test_python_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if block.heading == "Transformers and Lightning":
        pytest.skip("tests/looking/test_training.py runs both where they are installed")
    settle(monkeypatch, tmp_path)
    monkeypatch.setitem(PRESETS, "translate", SimpleNamespace(experiment=tiny()))
    own = OWN
    if block.heading == "The engine without run folders":
        own += OF_TWO_STACKS
    if block.heading == "In a notebook":
        own += next(one.text for one in PYTHON.values() if one.place == "recording.md:1")
        tag = SimpleNamespace(tag=lambda **_options: None)
        traits = SimpleNamespace(Unicode=lambda _value: tag, Int=lambda _value: tag)
        widget = type("AnyWidget", (SimpleNamespace,), {})
        monkeypatch.setitem(sys.modules, "traitlets", traits)
        monkeypatch.setitem(sys.modules, "anywidget", SimpleNamespace(AnyWidget=widget))
    snapshot = str(next(ROOT.glob(SNAPSHOT)))
    exec(own + block.text.replace("runs/ID/snapshots/00000417.safetensors", snapshot), {})


BENCH = (ROOT / "requirements-bench.txt").read_text("utf-8")
BENCH_TRANSFORMERS = int(re.findall(r"^transformers\D+(\d+)", BENCH, re.MULTILINE)[0])
NUMBERS = {"eight": 8, "여덟": 8, "ten": 10, "fourteen": 14, "Sixteen": 16}
OPEN = sum(not one.is_lesson for one in RECORDINGS.values())


@pytest.mark.parametrize(
    ("document", "words", "n"),
    [
        ("README.md", r"(\w+) recorded trainings", OPEN),
        ("README.md", r"(\d+) more that single pages", len(RECORDINGS) - OPEN),
        ("README.ko.md", r"미리 학습된 실행 (\d+)개", OPEN),
        ("README.ko.md", r"페이지에만 나오는 실행 (\d+)개", len(RECORDINGS) - OPEN),
        ("README.md", r"in (\w+) stops", len(catalogue.lesson("translate").tasks)),
        ("README.ko.md", r"(\w+) 단계로", len(catalogue.lesson("translate").tasks)),
        ("docs/deploy.md", r"the (\w+) recorded trainings", OPEN),
        ("docs/look.md", r"Transformers (\d+)\.", BENCH_TRANSFORMERS),
        ("docs/recording.md", r"Transformers (\d+)\.", BENCH_TRANSFORMERS),
        ("docs/lessons.md", r"(\w+) come with the app", len(catalogue.catalogue().lessons)),
    ],
)
def test_numbers_are_counted(document: str, words: str, n: int) -> None:
    (said,) = re.findall(words, " ".join((ROOT / document).read_text("utf-8").split()))
    assert NUMBERS.get(said) or int(said) == n

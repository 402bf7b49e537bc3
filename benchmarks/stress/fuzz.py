"""Fuzz run folders, links and uploads: pages, lists, workers and the server must survive.

Each property is tried on examples by hypothesis, the same ones every time. A forged folder is a
copy of a run with one file or folder changed: a value of another kind or out of range, a shape, a
dtype or a step that does not fit, bytes changed or cut off, a link, a pipe or a folder in its
place. A forged link holds parameters and values that fit, almost fit or fit nothing.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import random
import shutil
import struct
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from benchmarks.linked_views import VIEWS
from benchmarks.report import Table
from benchmarks.served import serve
from benchmarks.stress import _garbling
from benchmarks.visitor import visitor
from pages.runs import filter
from pages.ui.address import view_link
from pages.ui.navigation.page_table import PAGES, PageFacts
from pages.ui.settings.fields import settings_of
from tests.pages.opening import opened_at
from tfm_core import cli
from tfm_core.config import TASK_FACTS, ConfigError, from_json, to_json
from tfm_core.presets import PRESETS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue import claim
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore

COUNT, QUICK = 1_000, 40
BASES = ("translate", "vit-digits", "span-corruption", "gpt-grammar", "captions", "sentiment",
         "translate-additive", "gpt-text")  # fmt: skip
"""Presets of the runs whose folders are forged."""

_Views = tuple[tuple[str, dict[str, str]], ...]
_WHOLE: _Views = (("train", {}), ("attention", {}), ("build", {"show": "run"}))
_LOOKS: _Views = (
    ("train", {}),
    ("attention", {}),
    ("attention", {"deeper": "heads"}),
    ("positions", {"view": "learned"}),
    ("before", {}),
)
READERS: dict[str, _Views] = {
    "experiment.json": (*_WHOLE, ("training-step", {"show": "run"})),
    "meta.json": _WHOLE,
    "status.json": _WHOLE,
    "best.json": (("train", {}),),
    "events.jsonl": (("train", {}), ("before", {})),
    "probe.json": (
        *_LOOKS, ("walk", {"show": "run"}), ("masks", {}), ("positions", {"view": "shuffle"})
    ),
    "probe.safetensors": (*_LOOKS, ("walk", {"show": "run"}), ("words", {"view": "patches"})),
    "snapshots/00000002.safetensors": (
        *_LOOKS, ("positions", {"view": "t5-bias"}), ("words", {"view": "moving"})
    ),
    "checkpoints/last/checkpoint.safetensors": (
        ("walk", {"show": "run"}),
        ("words", {"view": "moving"}),
        ("training-step", {"show": "run", "weights": "last"}),
        ("attention", {"example": "own"}),
        ("encoders", {}),
        ("gpt", {}),
        ("captions", {}),
    ),
    "worker.log": (("train", {}),),
    "snapshots": _LOOKS,
    "checkpoints": _WHOLE,
    "requests": _WHOLE,
    "claims": _WHOLE,
}  # fmt: skip
"""The files and folders that are forged, and the views that read each."""

RUNS = sorted(folder.name for folder in RECORDED.iterdir() if folder.name.startswith("recorded-"))
ODD = (
    "", " ", "0", "-1", "1", "2", "7", "12", "64", "1.5", "1e9", "999999999", "9" * 5_000, "nan",
    "inf", "true", "None", "null", "[]", "{}", "1,1", "1,", ",", "1-2-2", "q3", "z9", "a" * 3_000,
    "\x00", "\n", "٣", "½", "🙂", "가", "%", "%00", "../../etc/passwd", "/etc/passwd",
    "<script>alert(1)</script>",
    "**bold** [a](javascript:alert(1)) ![i](http://127.0.0.1/x)", "$x$", ":material/check:",
    "picture-", "picture-eJw", "picture-" + "A" * 2_000, "test-7", "test-999999999", "own", "run",
    "draft", "gpt2-xl", "vit-h", "\u202e", "a;b:c=d&e",
)  # fmt: skip
"""Values of a link that fit nothing, or another parameter."""

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
SIZES = ((1, 1), (28, 28), (3, 500), (97, 61))
DRAFT_READERS = ("build", "parameters", "walk", "masks")
"""Pages that draw an accepted configuration, one after the other."""


@dataclass
class Tally:
    """What was tried: examples, views of pages, outcomes, and what broke, in a line each."""

    tried: int = 0
    views: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def open(self, what: str, file: str, query: dict[str, str]) -> AppTest:
        """Open a page below pages/; note where it broke."""
        app = opened_at(file, **query)
        self.look(f"{what}: {file} {query}", app)
        return app

    def look(self, what: str, app: AppTest) -> None:
        """Count a page that was drawn; note where it broke, or a row of its list did."""
        self.views += 1
        lost = [one.value for one in app.caption if "see the server's log" in one.value]
        if app.exception or lost:
            errors = [*(one.message or one.value for one in app.exception), *lost]
            self.broken.append(f"{what}: {'; '.join(map(str, errors))}"[:1000])


@contextmanager
def app_on(root: Path) -> Iterator[None]:
    """Let pages read a folder of runs, start nothing, and show errors in full."""
    config.set_option("client.showErrorDetails", "full")
    scan, variables = manifest_scanner.scan_component_manifests, dict(os.environ)
    manifest_scanner.scan_component_manifests = functools.cache(scan)  # not for every page anew
    os.environ.update(TFM_RUNS_DIR=str(root), TFM_WARM_WORKERS="0")
    try:
        yield
    finally:
        manifest_scanner.scan_component_manifests = scan
        os.environ.clear()
        os.environ.update(variables)


def each(count: int, *strategies: Any) -> Callable[[Callable[..., None]], None]:
    """Call the decorated function at once with so many examples, the same ones every time."""
    tried = settings(
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # every example is tried, none is made smaller
        suppress_health_check=list(HealthCheck),
        max_examples=count,
    )
    return lambda function: tried(given(*strategies)(function))()


def tables(*, quick: bool) -> Iterator[Table]:
    """Fuzz run folders on the pages that read them and a server; then links and uploads."""
    count = QUICK if quick else COUNT
    found = {name: Tally() for name in ("run folders", "links", "configurations", "pictures")}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        bases, root = trained(place / "bases"), place / "runs"
        root.mkdir()
        with app_on(root):
            folders(found["run folders"], bases, root, count=count)
            look_at_lists(found["run folders"], root)
        if not is_served(place):
            found["run folders"].broken.append("a server on all forged folders: see its log")
    with tempfile.TemporaryDirectory() as name, app_on(Path(name)):
        links(found["links"], count=count)
        configurations(found["configurations"], count=count // 2)
        pictures(found["pictures"], count=count // 2)
    yield Table(
        "Forged run folders, links and uploads",
        ["what", "examples", "views", "outcomes", "broke"],
        [
            [
                what,
                f"{one.tried:,}",
                f"{one.views:,}",
                ", ".join(f"{n:,} {words}" for words, n in one.outcomes.most_common()),
                str(len(one.broken)),
            ]
            for what, one in found.items()
        ],
        [
            f"Runs of {', '.join(BASES)}; examples by hypothesis, the same ones every time.",
            *(f"{what}: {words}." for what, one in found.items() for words in one.broken[:20]),
        ],
    )


def trained(root: Path, names: tuple[str, ...] = BASES) -> list[Run]:
    """Train a run of each preset for two steps on a little data."""
    store, runs = RunStore(root, recorded=None), []
    for name in names:
        experiment = PRESETS[name].experiment
        task, little = experiment.task, {"n_train": 64, "n_validation": 16, "n_test": 16}
        sizes = {key: n for key, n in little.items() if key in type(task).model_fields}
        experiment = experiment.replace(
            task=task.replace(**sizes).model_dump(),
            training=experiment.training.replace(steps=2, batch_size=8).model_dump(),
        )
        run = store.create(experiment, name=name, preset=name)
        assert execute(run).state == "finished"
        runs.append(run)
    return runs


def folders(tally: Tally, bases: list[Run], root: Path, *, count: int) -> None:
    """Forge copies of the runs; open the views that read them, and resume every fourth."""

    @each(
        count,
        st.integers(0, len(bases) - 1),
        st.sampled_from(sorted(READERS)),
        st.integers(0, 10**9),
    )
    def one(base: int, file: str, seed: int) -> None:
        run = Run(root / f"garbled-{tally.tried:05d}")
        shutil.copytree(bases[base].folder, run.folder)
        way = _garbling.garble(run.folder, file, random.Random(seed))
        tally.outcomes[way] += 1
        tally.tried += 1
        what = f"{run.id} {bases[base].meta.name} {file} {way} {seed}"
        for page, query in READERS[file]:
            tally.open(what, PAGES[page].file, {"run": run.id, **query})
        if tally.tried % 4 == 0:
            resume(tally, what, run)


def resume(tally: Tally, what: str, run: Run) -> None:
    """Resume a run in this process: it ends in a state that can be shown, or is refused."""
    tally.views += 1
    try:
        status = execute(run)
    except (claim.RunHeld, OSError, ValueError):
        return
    except Exception as error:
        tally.broken.append(f"{what}: a worker: {type(error).__name__}: {error}"[:1000])
        return
    if status.state not in {"finished", "failed", "stopped"}:
        tally.broken.append(f"{what}: a worker left it {status.state}")


def look_at_lists(tally: Tally, root: Path) -> None:
    """Draw Home and all runs on one page, and list them on the command line."""
    per_page, filter.PER_PAGE = filter.PER_PAGE, 10_000
    try:
        tally.open("lists home", PAGES["home"].file, {})
        app = tally.open("lists runs", PAGES["runs"].file, {})
        for words in ("damaged", "translate"):
            tally.look(f"lists {words}", app.text_input(key="runs-words").set_value(words).run())
    finally:
        filter.PER_PAGE = per_page
    output = io.StringIO()
    tally.views += 1
    with contextlib.redirect_stdout(output):
        code = cli.main(["runs", "--json"])
    n_listed = sum(not run["id"].startswith("recorded-") for run in json.loads(output.getvalue()))
    n_there = sum(entry.is_dir() for entry in os.scandir(root) if entry.name[0] != ".")
    if code or n_listed != n_there:
        tally.broken.append(f"lists: the command line shows {n_listed} of {n_there}, exit {code}")


def is_served(place: Path) -> bool:
    """Start a server on all forged folders; return whether it draws its first page."""
    with serve(place) as served:
        with visitor(served.url) as one:
            one.visit("runs")
        shutil.rmtree(served.store.root)  # runs that claim to train would be waited for
    return "Traceback" not in (place / "server.log").read_text(errors="replace")


def links(tally: Tally, *, count: int) -> None:
    """Open forged links to any page."""

    @each(count, link())
    def one(address: tuple[str, dict[str, str]]) -> None:
        name, query = address
        tally.tried += 1
        tally.outcomes[name] += 1
        tally.open(f"link {tally.tried}", PAGES[name].file, query)


@st.composite
def link(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """Return a page's name and the query of a link to it."""
    page = draw(st.sampled_from(list(PAGES.values())))
    known = _values(page)
    query = {
        name: draw(st.sampled_from(known[name] + ODD) | st.text(max_size=30))
        for name in draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=5))
    }
    if draw(st.booleans()):
        query["run"] = draw(st.sampled_from((*RUNS, *RUNS, "recorded-nothing", *ODD)))
    if draw(st.integers(0, 9)) == 0:
        query[draw(st.text(max_size=20))] = draw(st.sampled_from(ODD))
    return page.name, query


def _values(page: PageFacts) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a page's address, and values of each that fit."""
    found: dict[str, tuple[str, ...]] = {"lang": ("en", "ko", "xx")}
    if page.name in VIEWS:
        for one in view_link.parameters(VIEWS[page.name]).values():
            names = tuple(str(name) for name in getattr(one, "names", ()))
            found |= {query: names for query in (one.query, *one.old)}
    families = {family for facts in TASK_FACTS.values() for family in facts.families}
    found["model.family"], found["task.name"] = tuple(sorted(families)), tuple(TASK_FACTS)
    for setting in settings_of("encoder-decoder", "copy"):
        found.setdefault(setting.path, ("2", "4", "true"))
    return found


def configurations(tally: Tally, *, count: int) -> None:
    """Upload forged experiments on the Train page, and open a page that reads an accepted one."""

    @each(count, st.sampled_from(sorted(PRESETS)), st.integers(0, 10**9))
    def one(name: str, seed: int) -> None:
        content = garbled_json(to_json(PRESETS[name].experiment), random.Random(seed))
        tally.tried += 1
        what = f"configuration {name} {seed}"
        app = _upload("train", "transfer-file", ("experiment.json", content, "application/json"))
        tally.look(f"{what} train", app)
        try:
            experiment = from_json(content)
        except ConfigError:
            tally.outcomes["refused in sentences"] += 1
            if not _says_why_not(app):
                tally.broken.append(f"{what}: refused without a word")
            return
        tally.outcomes["accepted"] += 1
        page = PAGES[DRAFT_READERS[tally.tried % len(DRAFT_READERS)]]
        tally.look(f"{what} {page.name}", opened_at(page.file, draft=experiment))


def pictures(tally: Tally, *, count: int) -> None:
    """Upload forged pictures where a run of digits takes one of your own."""
    query = {"run": "recorded-digits", "example": "own"}

    @each(count, st.sampled_from(FORMATS), st.sampled_from(SIZES), st.integers(0, 10**9))
    def one(form: str, size: tuple[int, int], seed: int) -> None:
        content = garbled_picture(form, size, random.Random(seed))
        tally.tried += 1
        file = (f"picture.{form.lower()}", content, "image/png")
        app = _upload("attention", "attention-upload", file, **query)
        tally.look(f"picture {form} {size} {seed}", app)
        tally.outcomes["refused in a sentence" if app.error else "accepted"] += 1


def _upload(page: str, key: str, file: tuple[str, bytes, str], **query: str) -> AppTest:
    app = opened_at(PAGES[page].file, **query)
    if page == "train":
        app.toggle(key="all-settings").set_value(True).run()
    return app.file_uploader(key=key).set_value(file).run()


def _says_why_not(app: AppTest) -> bool:
    kinds = ("caption", "error", "markdown", "warning")
    return any("was not loaded" in str(one.value) for kind in kinds for one in app.get(kind))


def garbled_json(text: str, rng: random.Random) -> bytes:
    """Return an experiment's JSON with something in it that should not be."""
    choice = rng.random()
    if choice < 0.1:
        return text.encode()[: rng.randrange(len(text))]
    if choice < 0.2:
        return _garbling.changed_bytes(text.encode(), rng.choice((1, 5)), len(text.encode()), rng)
    if choice < 0.25:
        keys = json.dumps({f"{'k' * 9}{n}": n for n in range(rng.choice((10, 30_000)))})
        return rng.choice((keys, "[" * 50_000, "1" * 5_000, '"\\ud800"', "", "\ufeff{}")).encode()
    values = json.loads(text)
    for _ in range(rng.choice((1, 1, 3))):
        _garbling.change(values, rng)
    return _garbling.written(values).encode()


def garbled_picture(form: str, size: tuple[int, int], rng: random.Random) -> bytes:
    """Return the file of a picture of noise, with something in it that should not be."""
    if rng.random() < 0.1:
        return _strange_picture(rng)
    mode = rng.choice(("L", "RGB")) if form in {"JPEG", "BMP"} else rng.choice(("L", "RGB", "RGBA"))
    image = Image.frombytes(mode, size, rng.randbytes(size[0] * size[1] * len(mode)))
    file = io.BytesIO()
    image.save(file, form)
    content = file.getvalue()
    choice = rng.random()
    if choice < 0.2:
        return content[: rng.randrange(len(content))]
    if choice < 0.8:
        most = rng.choice((64, 10**9))
        return _garbling.changed_bytes(content, rng.choice((1, 3, 20)), most, rng)
    return content


def _strange_picture(rng: random.Random) -> bytes:
    """Return no picture, or one that claims to be far larger than its file."""
    side = rng.choice((0, 20_000, 2**31 - 1))
    chunk = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    check = struct.pack(">I", zlib.crc32(chunk))
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + check
    return rng.choice((b"", b"<svg onload='alert(1)'/>", b"PK\x03\x04", rng.randbytes(999), png))

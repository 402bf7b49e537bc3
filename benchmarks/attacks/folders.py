"""Garbled folders of runs: whatever stands in them, pages, lists, workers and the server go on.

A run of each kind of model is trained for two steps. Every attack is a copy of one with one file
that is not what it should be: a value of another kind or out of every range, a shape, a dtype, a
name or a step that does not fit, bytes changed or cut off, a link, a pipe or a folder in its place.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.attacks._garbling import garble
from benchmarks.attacks._pages import TRIED, Tally, app_on
from benchmarks.report import Table
from benchmarks.served import serve
from benchmarks.visitor import visitor
from pages.runs import filter
from pages.ui.navigation.page_table import PAGES
from tfm_core import cli
from tfm_core.presets import PRESETS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue import claim
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

COUNT, QUICK = 1_000, 40
BASES = ("translate", "vit-digits", "span-corruption", "gpt-grammar", "captions", "sentiment",
         "translate-additive", "gpt-text")  # fmt: skip
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
"""What of a run's folder is garbled, and which views of pages read it."""


def tables(*, quick: bool) -> Iterator[Table]:
    """Try garbled folders on the pages that read them, then all of them on the server at once."""
    tally, ways = Tally(), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        bases, root = trained(Path(place) / "bases"), Path(place) / "runs"
        root.mkdir()
        with app_on(root):
            attack(tally, ways, bases, root, count=QUICK if quick else COUNT)
            n_folders = tally.attacks
            look_at_lists(tally, root)
        answered = serve_all(Path(place))
    yield Table(
        "Garbled folders of runs",
        ["what", "tried", "fell"],
        [
            ["folders", f"{n_folders:,}", str(len({one.split()[0] for one in tally.broken}))],
            ["views, lists, resumes", f"{tally.views:,}", str(len(tally.broken))],
            ["a server started on all of them at once", "1", "0" if answered else "1"],
            *([way, f"{n:,}", ""] for way, n in ways.most_common()),
        ],
        [
            f"Runs of {', '.join(BASES)}; examples by hypothesis, the same ones every time.",
            *(f"Fell: {one}." for one in tally.broken[:20]),
        ],
    )


def trained(root: Path, names: tuple[str, ...] = BASES) -> list[Run]:
    """Train a run of each kind of model for two steps on a little data."""
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


def attack(tally: Tally, ways: Counter[str], bases: list[Run], root: Path, *, count: int) -> None:
    """Garble copies of the runs; open what reads them, and let a worker go on with them."""

    @settings(TRIED, max_examples=count)
    @given(st.integers(0, len(bases) - 1), st.sampled_from(sorted(READERS)), st.integers(0, 10**9))
    def one(base: int, file: str, seed: int) -> None:
        run = Run(root / f"garbled-{tally.attacks:05d}")
        shutil.copytree(bases[base].folder, run.folder)
        way = garble(run.folder, file, random.Random(seed))
        ways[way] += 1
        tally.attacks += 1
        what = f"{run.id} {bases[base].meta.name} {file} {way} {seed}"
        for page, query in READERS[file]:
            tally.open(what, PAGES[page].file, {"run": run.id, **query})
        if tally.attacks % 4 == 0:
            resume(tally, what, run)

    one()


def resume(tally: Tally, what: str, run: Run) -> None:
    """Let a worker go on with a run: it ends in a state that can be shown, or is refused."""
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
    """Draw Home and the list of all runs on one page, and list them on the command line."""
    per_page, filter.PER_PAGE = filter.PER_PAGE, 10_000
    try:
        tally.open("lists home", PAGES["home"].file, {})
        app = tally.open("lists runs", PAGES["runs"].file, {})
        for words in ("damaged", "translate"):
            tally.look(f"lists {words}", app.text_input(key="runs-words").set_value(words).run())
    finally:
        filter.PER_PAGE = per_page
    said = io.StringIO()
    tally.views += 1
    with contextlib.redirect_stdout(said):
        code = cli.main(["runs", "--json"])
    n_listed = sum(not run["id"].startswith("recorded-") for run in json.loads(said.getvalue()))
    n_there = sum(entry.is_dir() for entry in os.scandir(root) if entry.name[0] != ".")
    if code or n_listed != n_there:
        tally.broken.append(f"lists: the command line shows {n_listed} of {n_there}, exit {code}")


def serve_all(place: Path) -> bool:
    """Start the server on all that was garbled; return whether it draws its first page."""
    with serve(place) as served:
        with visitor(served.url) as one:
            one.visit("runs")
        shutil.rmtree(served.store.root)  # what says that it trains would be waited for
    return "Traceback" not in (place / "server.log").read_text(errors="replace")

"""A run as a folder of static files, updated while it trains, and the site of recorded runs.

See ``tfm_core.hosting.published`` and ``docs/deploy.md``. A snapshot is written once, in a file for
each kind of attention and example, so watchers fetch only what they see. Late ones fetch a reel,
which holds all snapshots that existed when it was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pages.components import live, stage
from pages.components.component import pack_bytes
from pages.i18n import _, languages, speaking
from pages.ui import show
from pages.ui.files import film
from pages.ui.model import stage_view
from pages.ui.runs import run_words, runs_access
from tfm_core.hosting.published.folder import EVERY, PAGE, Folder, tag
from tfm_core.hosting.published.lines import CurveLines, Line
from tfm_core.inspect.progress import stage as stages
from tfm_core.inspect.progress.stage import Stage
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.training.stage import ROLE_COLOURS
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

MAX_VIEWS = 12
"""Kinds of attention times examples that can be looked at."""
LOOKS_ANEW = 10
"""Updates after which the texts of a live run are rewritten even if nothing happened."""

REEL = 8
"""Snapshots after which reels are rewritten."""

_PER_VIEW = (
    "attention",
    "example",
    "surface",
    "side",
    "cls",
    "query",
    "key",
    "row_words",
    "truth",
    "telling",
)
_STILL = ("words", "ill", "grey")  # the part of a stage's data that never changes
_OF_A_LOOK = ("name", "lines", "now", "total", "live")  # what the page computes itself


class Publication:
    """A run, its folder, and what has been written so far."""

    def __init__(self, run: Run, folder: Folder, *, is_recorded: bool = False) -> None:
        """Raise RunDamaged if the run cannot be read.

        is_recorded: the page is one of a gallery (``recorded_site``), which has the script and the
        style sheet of all.
        """
        training = run.experiment.training
        self.run, self.folder, self._is_recorded = run, folder, is_recorded
        self._reader = run.reader()
        self._lines = CurveLines(is_patient=training.patience > 0)
        self._most = stage.MAX_VALUES // max(1, training.snapshots)  # weights of a file
        self._views: Sequence[Stage] = ()
        self._first: tuple[int, int] | None = None
        self._snapshots: dict[int, str] = {}
        self._files: dict[int, list[str]] = {}
        self._n_in_reel = 0
        self._parts: dict[str, str] = {}  # what names each
        self._names: dict[str, list[str]] = {}  # and the files of each
        self._told: object = None
        self._n_looks = self._beat = 0

    def update(self, *, every: float = EVERY) -> bool:
        """Write what is new; return whether the run goes on.

        every: polling interval of pages in seconds. Raises OSError, and ValueError if the run's
        probe cannot be read.
        """
        status = self.run.status  # before the events: at the end none of them is missed
        lines = self._lines.take(self._reader.read()) + self._new_snapshots()
        if lines:
            self.folder.append(lines)
        n_new = len(self._snapshots) - self._n_in_reel
        if n_new < 0 or n_new >= REEL or (n_new and not status.is_active):
            self._write_reels()
        facts = status.state, tuple(self._snapshots.items()), self.run.meta.name
        if facts != self._told or (status.is_active and self._n_looks % LOOKS_ANEW == 0):
            self._write_parts()
            self._told = facts
            self._beat += 1
        self._n_looks += 1
        curves = self._lines.curves
        self.folder.say(
            {
                "page": live.static("live").version,
                "languages": languages(),
                "state": status.state,
                "live": status.is_active,
                "step": int(curves.steps.last("step") or 0),
                "total": int(curves.started.get("total_steps") or status.total_steps),
                "every": every,
                "beat": self._beat,
                **self._parts,
            }
        )
        return status.is_active

    # ---- snapshots

    def _new_snapshots(self) -> list[Line]:
        """Write the files of new snapshots; return their log lines."""
        lines: list[Line] = []
        tags = {step: self._tag(step) for step in self.run.snapshot_steps()}
        for step in [step for step, its in self._snapshots.items() if tags.get(step) != its]:
            del self._snapshots[step]
            lines.append(["gone", step])
        for step in sorted(tags.keys() - self._snapshots.keys()):
            if files := self._write_snapshot(step, tags[step]):
                self._snapshots[step], self._files[step] = tags[step], files
                lines.append(["snapshot", step, tags[step]])
        self._snapshots = dict(sorted(self._snapshots.items()))
        return lines

    def _tag(self, step: int) -> str:
        """Return a tag of a snapshot that changes with it or the probe."""
        facts: list[object] = [self._most, languages()]
        for path in (snapshot_path(self.run.folder, step), self.run.folder / "probe.json"):
            try:
                info = path.stat()
            except OSError:
                continue
            facts += [info.st_mtime_ns, info.st_size]
        return tag(repr(facts).encode())

    def _write_snapshot(self, step: int, its: str) -> list[str]:
        """Write a file for each view; return their names, none if it cannot be read."""
        begun = stages.read(self.run, steps=[step])
        if not begun.frames:
            return []
        n_shown = max(1, min(begun.n_attended, MAX_VIEWS // max(1, len(begun.kinds))))
        if begun.weights is None:
            n_shown = 1
        views = [
            replace(stages.read(self.run, kind, example, [step]), n_attended=n_shown)
            for kind in begun.kinds or (None,)
            for example in range(n_shown)
        ]
        names = [f"{step:08d}-{its}-{stage.kind_number(view)}-{view.example}.bin" for view in views]
        for name, view in zip(names, views, strict=True):
            self.folder.put(name, self._packed(view, its))
        self._views = views
        self._first = stage.kind_number(begun), begun.example if begun.example < n_shown else 0
        return names

    def _packed(self, view: Stage, its: str) -> bytes:
        (frame,), weights, block = stage.bounded(view.frames, view.weights, self._most)
        labels = {}
        for spoken in languages():
            with speaking(spoken):
                labels[spoken] = [_(label) for label in frame.labels]
        header = {
            "step": frame.step,
            "tag": its,
            "labels": labels,
            "answers": stage.answers(frame),
            "shape": weights.shape[1:],
            "block": block,
        }
        return pack_bytes(header, weights)

    def _write_reels(self) -> None:
        """Write all snapshots of each view to one file, each with its length (uint32)."""
        its = tag(repr(self._snapshots).encode())
        names = []
        for view in self._views:
            ending = f"{stage.kind_number(view)}-{view.example}.bin"
            content = bytearray()
            for step, of_step in self._snapshots.items():
                part = (self.folder.path / f"{step:08d}-{of_step}-{ending}").read_bytes()
                content += len(part).to_bytes(4, "little") + part
            names.append(f"reel-{its}-{ending}")
            self.folder.put(names[-1], bytes(content))
        self._parts["reel"], self._names["reel"] = its, names
        self._n_in_reel = len(self._snapshots)

    # ---- texts

    def _write_parts(self) -> None:
        """Write the page's texts in each language, and delete the old ones."""
        looks, nows = {}, {}
        for spoken in languages():
            with speaking(spoken):
                stage_data = stage.told(
                    stage_view.moving(self.run, tuple(self._snapshots)), name=""
                )
                looks[spoken] = self._look({name: stage_data[name] for name in _STILL})
                moving = stage_data.keys() - {*_STILL, *_OF_A_LOOK}
                nows[spoken] = {"stage": {name: stage_data[name] for name in sorted(moving)}}
        self._put("look", looks)
        self._put("now", nows)
        static = {} if self._is_recorded else live.static("live").contents
        for name, content in static.items():
            self.folder.put(name, content)
        self.folder.put(PAGE, live.run_page(self.run.meta.name, is_recorded=self._is_recorded))
        now = [name for names in self._names.values() for name in names]
        snapshots = [name for step in self._snapshots for name in self._files[step]]
        self.folder.tidy({*now, *static, *snapshots})

    def _look(self, stage_data: Mapping[str, Any]) -> dict[str, Any]:
        views = [stage.still(view) for view in self._views]
        shared = views[0] if views else {}
        run = self.run
        return {
            "title": run_words.name(run),
            "about": self._about(),
            "words": {
                **live.words(),
                "states": {state: _(shown.label) for state, shown in run_words.STATES.items()},
            },
            "stage": stage_data,
            "colours": {role: COLOURS[name] for role, name in ROLE_COLOURS.items()},
            "tables": list(film.tables(run, with_id=False)),
            "first": self._first,
            "shared": {name: shared[name] for name in shared if name not in _PER_VIEW},
            "views": [{name: view[name] for name in _PER_VIEW} for view in views],
        }

    def _about(self) -> str:
        if not self.run.status.is_active:
            return film.about(self.run)
        return f"{run_words.learns(self.run)} · {self.run.meta.created[:10]}"  # the rest moves on

    def _put(self, part: str, values: Mapping[str, Any]) -> None:
        contents = {
            spoken: json.dumps(value, ensure_ascii=False).encode()
            for spoken, value in values.items()
        }
        its = tag(*contents.values())
        names = {spoken: f"{part}-{its}-{spoken}.json" for spoken in contents}
        for spoken, content in contents.items():
            self.folder.put(names[spoken], content)
        self._parts[part], self._names[part] = its, list(names.values())


FIRST_RUN = "recorded-korean"
"""The run on stage."""
NOWHERE = "404.html"
"""The page of an address that leads nowhere, as many web servers call it."""


def recorded_runs() -> list[Run]:
    runs = [run for run in RunStore().list() if run.meta.recorded]
    return sorted(runs, key=lambda run: run.id != FIRST_RUN)


def write_site(folder: Path, runs: list[Run]) -> list[str]:
    """Write the site of the runs that can be read; return a sentence on each other one.

    Raises OSError.
    """
    written, problems = list[Run](), list[str]()
    for run in runs:
        try:
            write_run(folder, run)
            written.append(run)
        except StudentError as error:
            problems.append(f"{run.id}: {_(error)}")
    write_gallery(folder, written)
    return problems


def write_gallery(folder: Path, runs: list[Run]) -> None:
    """Write everything but the runs: gallery without the damaged, 404 page, scripts and styles."""
    runs = [run for run in runs if run.problem is None]
    files = Folder(folder)
    for kind in ("gallery", "live"):
        for name, content in live.static(kind).contents.items():
            files.put(name, content)
    files.put(PAGE, live.gallery_page([_card(run) for run in runs]))
    files.put(NOWHERE, live.missing_page([run.id for run in runs]))


def write_run(folder: Path, run: Run) -> None:
    Publication(run, Folder(folder / run.id), is_recorded=True).update()


def _card(run: Run) -> live.Card:
    n_parameters = runs_access.curves(run).started.get("n_parameters", 0)
    facts = [
        _("{n} parameters", n=show.count(n_parameters)),
        run_words.progress(run.status),
        _("trained {time}", time=show.duration(run.status.seconds)),
    ]
    return live.Card(
        name=run.id,
        title=run_words.name(run),
        learns=run_words.learns(run),
        reached=run_words.result(run),
        facts=facts,
        curve=run_words.sparkline_svg(run),
        curve_name=run_words.sparkline_name(run),
    )

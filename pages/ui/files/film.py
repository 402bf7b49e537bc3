"""A run as one HTML page: what is read of the run for it, and how large it becomes.

``pages/components/film.py`` builds the page; its model comes from ``tfm_core/export``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pages.components import film as component
from pages.components.film import MAX_BYTES, Asked, Film, View
from pages.components.stage import kind_number, pack, told
from pages.i18n import N_, _
from pages.ui import show
from pages.ui.model import stage_view
from pages.ui.runs import run_words, runs_access
from tfm_core.config import LookConfig, family_label
from tfm_core.config.base import Config
from tfm_core.inspect.progress import stage as stages
from tfm_core.inspect.progress.stage import Stage
from tfm_core.made_with import versions
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.runs.run import Run

MAX_VALUES = 1_600_000
"""Weights of all views together to begin with; half of them until the page is small enough."""
_MIN_VALUES = 20_000
_A_VIEW = 200_000  # weights of one kind and example, from which on others are left out first
_MAX_TEXT = 60
RELOAD_SECONDS = 10
"""After which a public page of a run that trains is written, and loads itself, again."""


Progress = Callable[[float, str], None]
"""Hears the share that is done, 0 to 1, and what is being done, in words."""


def film(
    run: Run,
    *,
    with_model: bool,
    progress: Progress = lambda share, words: None,
    is_public: bool = False,
    gallery: str = "",
) -> bytes:
    """Return the page of a run, at most ``MAX_BYTES`` without the model.

    is_public: it lies on a web server; it then lacks the run's id, with which one could do more
    than watch, and reloads itself while the run trains. gallery: see ``Film``. Raises ValueError,
    in a sentence, where the run's probe or its checkpoint cannot be read, or its model cannot be
    written as ONNX.
    """
    model = None
    if with_model:
        progress(0.05, N_("Exporting to ONNX"))
        model = _asked(run)
    progress(0.6, N_("Reading snapshots"))
    is_live = is_public and run.status.is_active
    steps = tuple(run.snapshot_steps())
    moving = stage_view.moving(run, steps)
    is_look = isinstance(run.experiment.task, LookConfig)
    if is_look:  # where nothing happened
        moving = replace(moving, moments=())
    most = MAX_VALUES
    while True:
        views, first = _views(run, most) if steps else ((), 0)
        made = Film(
            title=run_words.name(run),
            about=about(run),
            stage={
                **told(moving, name=views[first].name if views else ""),
                "live": is_live,
                "has_maps": bool(views),
                "autoplay": bool(gallery),
                "loop": False,
                "compact": False,
                "alone": is_look,
            },
            views=views,
            first=first,
            moments=moving.moments,
            tables=list(tables(run, with_id=not is_public)),
            asked=model,
            gallery=gallery,
            reload=RELOAD_SECONDS if is_live else 0,
        )
        small = replace(made, asked=None)
        if most < _MIN_VALUES or len(component.page(small)) <= MAX_BYTES:
            return component.page(made)
        most //= 2


def model_bytes(run: Run) -> int | None:
    """Return about how many bytes the model adds, or None while unknown."""
    weights = weights_bytes(run)
    return None if weights is None else component.model_bytes(weights)


def weights_bytes(run: Run) -> int | None:
    """Return the size of a run's float32 weights in bytes, or None while unknown."""
    n_parameters = runs_access.curves(run).started.get("n_parameters")
    return None if n_parameters is None else 4 * int(n_parameters)


def file_name(run: Run) -> str:
    from tfm_core.export import bundle

    return bundle.file_name(run).removesuffix(".zip") + ".html"


def about(run: Run) -> str:
    """Return a line on a run: task, progress, result, time."""
    parts = [
        run_words.learns(run),
        run_words.progress(run_words.reached(run)),
        run_words.result(run),
    ]
    if run.status.seconds:
        parts.append(_("trained {time}", time=show.duration(run.status.seconds)))
    parts.append(run.meta.created[:10])
    return " · ".join(part for part in parts if part)


def _views(run: Run, most: int) -> tuple[Sequence[View], int]:
    """Return views of all kinds of attention on as many examples as fit, and the first one's index.

    most: weights of all together.
    """
    begun = stages.read(run)
    size = 0 if begun.weights is None else begun.weights.size
    n_kinds = max(1, len(begun.kinds))
    n_shown = max(1, min(begun.n_attended, most // (n_kinds * max(1, min(size, _A_VIEW)))))
    if size == 0:
        n_shown = 1
    first = begun.example if begun.example < n_shown else 0
    views = []
    for kind in begun.kinds or (None,):
        for example in range(n_shown):
            shown = begun
            if (kind, example) != (begun.kind, begun.example):
                shown = stages.read(run, kind, example)
            views.append(_view(shown, n_shown, most // (n_kinds * n_shown)))
    chosen = next(
        n
        for n, view in enumerate(views)
        if (view.kind, view.example) == (kind_number(begun), first) or size == 0
    )
    return views, chosen


def _view(shown: Stage, n_shown: int, most: int) -> View:
    name = f"{shown.kind} {shown.example}"
    shown = replace(shown, n_attended=min(shown.n_attended, n_shown))
    return View(kind_number(shown), shown.example, name, pack(shown, name, most))


def tables(run: Run, *, with_id: bool) -> Iterator[tuple[str, component.Rows]]:
    """Yield the settings and versions of a run as tables with captions."""
    experiment, meta = run.experiment, run.meta
    if isinstance(experiment.task, LookConfig):  # whose other settings only lay out its maps
        names = ("called", "n_parameters", "modules", "n_left_out", "unseen")
        yield _("Model"), list(_settings(experiment.task, only=names))
        return
    family = _(family_label(experiment.model.family))
    yield _("Model"), [(_("Family"), family), *_settings(experiment.model)]
    yield _("Task"), list(_settings(experiment.task))
    if not experiment.task.is_foreign:  # only its program knows how it trained
        yield _("Training"), [*_settings(experiment.training), (_("Seed"), str(experiment.seed))]
    yield (
        _("Versions"),
        [
            *versions("onnxruntime").items(),
            (_("Device"), show.device(run.status.device or meta.device)),
            (_("Begun"), meta.created[:16].replace("T", " ") + " UTC"),
            *([(_("Run"), run.id)] if with_id else []),
        ],
    )


def _settings(config: Config, only: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    for name, field in type(config).model_fields.items():
        text = _said(getattr(config, name))
        if text and name not in ("family", "kind") and (not only or name in only):
            yield _(field.title) or name, text


def _said(value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, tuple):
        return ", ".join(value)
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def _asked(run: Run) -> Asked:
    from tfm_core.export.onnx import onnx_file
    from tfm_core.export.query_settings import as_json, query_settings
    from tfm_core.inspect.source.carried import carried

    experiment = run.experiment
    data = carried(experiment)
    file = onnx_file(run)
    return Asked(
        onnx=file.content,
        sizes=file.inputs,
        told=as_json(query_settings(experiment, data), data),
        examples=list(_examples(run)),
    )


def _examples(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the run's unseen examples as inputs of the model."""
    probe = run.probe()
    for number, item in enumerate(probe.items):
        if probe.images is not None:
            picture = np.ascontiguousarray(probe.images[number])
            pixels = base64.b64encode(picture.tobytes()).decode()
            yield {"picture": picture_url(picture), "pixels": pixels}
        elif "prompt" in item:
            yield {"text": item["src_text"], "tokens": list(item["tgt"][: item["prompt"]])}
        else:
            yield {"text": item["src_text"], "tokens": list(item["src"])}

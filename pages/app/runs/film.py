"""A run as one HTML page that plays it, and the site of recorded runs with a gallery of such pages.

Everything is in the page, and its policy forbids all requests. It plays the scripts of the app's
stage; data are gzipped, which browsers decompress. Its model comes from ``tfm_core/export``. The
gallery (``docs/deploy.md``) fetches the pages of the runs.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from pages.app import show
from pages.app.model import stage_view
from pages.app.runs import run_words, runs_access
from pages.components.digits import board_words
from pages.components.files import FOLDER, bundled
from pages.components.html_page import html_page
from pages.components.stage import kind_number, pack
from pages.i18n import N_, _
from tfm_core.choices.config import family_label
from tfm_core.choices.config.base import Config
from tfm_core.inspect import stage as stages
from tfm_core.made_with import versions
from tfm_core.plots.png import picture_url
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.export.onnx import OnnxFile


from pathlib import Path

from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

MAX_BYTES = 5_000_000
"""The limit of a page without the model."""
MAX_VALUES = 1_600_000
"""Weights of all views together to begin with; half of them until the page is small enough."""
_MIN_VALUES = 20_000
_LARGE_VIEW = 200_000  # weights of one kind and example, from which on others are left out first
_MAX_TEXT = 60
RELOAD_SECONDS = 10
"""After which a public page of a run that trains is written, and loads itself, again."""
_STYLES = (
    "focus.css",
    "shared.css",
    "stage.css",
    "data_table.css",
    "drawing_board.css",
    "film.css",
)
_RUNTIME = FOLDER / "vendor" / "onnxruntime"
_RUNTIME_WASM = _RUNTIME / "ort-wasm-simd.wasm.gz"
_RUNTIME_SCRIPT = _RUNTIME / "ort.wasm-core.min.js"

Rows = Sequence[tuple[str, str]]
"""Names and values of a small table."""


def film(
    run: Run,
    *,
    with_model: bool,
    progress: Callable[[float, str], None] = lambda share, words: None,
    is_public: bool = False,
    gallery: str = "",
) -> bytes:
    """Return the page of a run, at most ``MAX_BYTES`` without the model.

    is_public: it lies on a web server; it then lacks the run's id, with which one could do more
    than watch, and reloads itself while the run trains. gallery: the address of the gallery that it
    is part of. Raises ValueError, in a sentence, where the run's probe or its checkpoint cannot be
    read, or its model cannot be written as ONNX.
    """
    onnx = None
    if with_model:
        from tfm_core.export.onnx import onnx_file

        progress(0.05, N_("Exporting to ONNX"))
        onnx = onnx_file(run)
    progress(0.6, N_("Reading snapshots"))
    is_live = is_public and run.status.is_active
    steps = tuple(run.snapshot_steps())
    moving = stage_view.moving(run, steps, name="")
    is_look = run.experiment.task.name == "look"
    if is_look:  # where nothing happened
        moving["moments"] = []
    made = partial(page, run, moments=moving["moments"], is_public=is_public, gallery=gallery)
    most = MAX_VALUES
    while True:
        views, first = _views(run, most) if steps else ([], 0)
        known = [view for view, _content in views]
        shown: dict[str, Any] = {
            "stage": {
                **moving,
                "name": known[first]["name"] if known else "",
                "live": is_live,
                "has_maps": bool(known),
                "autoplay": bool(gallery),
                "loop": False,
                "compact": False,
                "alone": is_look,
            },
            "views": known,
            "first": [known[first]["kind"], known[first]["example"]] if known else [0, 0],
            "asking": None,
        }
        packed = [content for _view, content in views]
        small = made(shown, packed)
        if most < _MIN_VALUES or len(small) <= MAX_BYTES:
            if onnx is None:
                return small
            return made({**shown, "asking": _asking(run, onnx)}, packed, onnx=onnx.content)
        most //= 2


def model_bytes(run: Run) -> int | None:
    """Return about how many bytes the model adds, or None while unknown."""
    weights = weights_bytes(run)
    return None if weights is None else added_bytes(weights)


def added_bytes(weights: int) -> int:
    """Return about how many bytes a model adds to a page. weights: its own bytes."""
    runtime = _RUNTIME_WASM.stat().st_size + _RUNTIME_SCRIPT.stat().st_size
    return round((runtime + weights) * 4 / 3)


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


def _views(run: Run, most: int) -> tuple[list[tuple[dict[str, Any], bytes]], int]:
    """Return views of all kinds of attention on as many examples as fit, and the first one's index.

    Each has what names it, and its packed snapshots. most: weights of all together.
    """
    begun = stages.read_stage(run)
    size = 0 if begun.weights is None else begun.weights.size
    n_kinds = max(1, len(begun.kinds))
    n_shown = max(1, min(begun.n_attended, most // (n_kinds * max(1, min(size, _LARGE_VIEW)))))
    if size == 0:
        n_shown = 1
    first = begun.example if begun.example < n_shown else 0
    views: list[tuple[dict[str, Any], bytes]] = []
    chosen = 0
    for kind in begun.kinds or (None,):
        for example in range(n_shown):
            shown = begun
            if (kind, example) != (begun.kind, begun.example):
                shown = stages.read_stage(run, kind, example)
            if size and (shown.kind, example) == (begun.kind, first):
                chosen = len(views)
            name = f"{shown.kind} {shown.example}"
            view = {"kind": kind_number(shown), "example": shown.example, "name": name}
            shown = replace(shown, n_attended=min(shown.n_attended, n_shown))
            views.append((view, pack(shown, name, most // (n_kinds * n_shown))))
    return views, chosen


def tables(run: Run, *, with_id: bool) -> Iterator[tuple[str, Rows]]:
    """Yield the settings and versions of a run as tables with captions."""
    experiment, meta = run.experiment, run.meta
    family = _(family_label(experiment.model.family))
    yield _("Model"), [(_("Family"), family), *_settings(experiment.model)]
    yield _("Task"), list(_settings(experiment.task))
    if experiment.training is not None:
        yield _("Training"), [*_settings(experiment.training), (_("Seed"), str(experiment.seed))]
    yield (
        _("Versions"),
        [
            *versions("onnxruntime").items(),
            (_("Device"), show.device(run.status.device or meta.device)),
            (_("Started"), meta.created[:16].replace("T", " ") + " UTC"),
            *([(_("Run"), run.id)] if with_id else []),
        ],
    )


def _settings(config: Config) -> Iterator[tuple[str, str]]:
    for name, field in type(config).model_fields.items():
        text = _value_text(getattr(config, name))
        if text and name not in ("family", "kind"):
            yield _(field.title) or name, text


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, tuple):
        return ", ".join(value)
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def _asking(run: Run, onnx: OnnxFile) -> dict[str, Any]:
    """Return what the page needs beside the model to ask it."""
    from tfm_core.export.query_settings import as_json, query_settings
    from tfm_core.trace.source.carried import carried

    data = carried(run.experiment)
    return {
        "told": as_json(query_settings(run.experiment, data), data),
        "sizes": onnx.inputs,
        "examples": list(_examples(run)),
        "words": _words(),
    }


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


def page(
    run: Run,
    shown: Mapping[str, Any],
    views: Sequence[bytes],
    *,
    moments: Sequence[tuple[int, str]] = (),
    onnx: bytes | None = None,
    is_public: bool = False,
    gallery: str = "",
) -> bytes:
    """Return a page, UTF-8; is_public and gallery: as in ``film``.

    shown: what the script reads; views: packed snapshots. moments: steps and sentences. onnx: the
    model.
    """
    scripts, policy, head = [bundled("film.js")], dict[str, str](), list[str]()
    parts = {f"view-{n}": _zipped(view) for n, view in enumerate(views)}
    parts["film"] = _zipped(json.dumps(shown).encode())
    if onnx is not None:  # WebAssembly, opened from a ``blob:`` of the page's own
        scripts.insert(0, _RUNTIME_SCRIPT.read_text(encoding="utf-8").partition("\n//# source")[0])
        parts["model"] = _zipped(onnx)
        parts["runtime"] = _RUNTIME_WASM.read_bytes()
        policy = {"script-src": "'wasm-unsafe-eval'", "connect-src": "blob:"}
    if shown["stage"]["live"]:
        head.append(f'<meta http-equiv="refresh" content="{RELOAD_SECONDS}">')
    if gallery:  # from a web server, which browsers ask for an icon
        head.append('<link rel="icon" href="data:,">')
    happened = "".join(
        f'<li><b>{escape(_step(step))}</b><button type="button" class="small" data-step="{step}">'
        f"{escape(_step(step))}</button><span>{escape(words)}</span></li>"
        for step, words in moments
    )
    title = run_words.name(run)
    problem = _("This page needs a browser from 2023 or later.")
    body = [
        f'<header class="top"><div><h1>{escape(title)}</h1>',
        f'<p class="about">{escape(about(run))}</p></div>',
        f'<a href="#asking">{escape(_("Ask the model"))}</a>' if onnx else "",
        f'<a href="{gallery}">{escape(_("All recorded runs"))}</a>' if gallery else "",
        f'<button type="button" class="small" id="theme">{escape(_("Switch theme"))}</button>',
        "</header>",
        f'<p id="problem" role="alert" hidden>{escape(problem)}</p>',
        f"<noscript><p>{escape(_('Turn on JavaScript to play the run.'))}</p></noscript>",
        '<main><div id="stage"><div class="stage"></div></div>',
        f'<section id="asking" hidden><h2>{escape(_("Ask the model"))}</h2></section>',
    ]
    if happened:
        body.append(
            f'<section><h2>{escape(_("What happened"))}</h2><ul class="happened">{happened}'
            "</ul></section>"
        )
    body += [
        f'<section><h2>{escape(_("Settings and versions"))}</h2><div class="tables">',
        *(_table(caption, rows) for caption, rows in tables(run, with_id=not is_public)),
        "</div></section></main>",
    ]
    for name, content in parts.items():
        packed = base64.b64encode(content).decode()
        body.append(f'<script type="text/plain" id="part-{name}">{packed}</script>')
    return html_page(title, body, styles=_STYLES, scripts=scripts, policy=policy, head=head)


def _step(step: int) -> str:
    return _("Step {step}", step=f"{step:,}")


def _table(caption: str, rows: Rows) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{body}</tbody></table>"


def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def _words() -> dict[str, str]:
    return {
        "type": _("Type words that the model knows"),
        "ask": _("Answer"),
        "go_on": _("Continue"),
        "examples": _("Try an unseen example:"),
        "or_examples": _("Or try an unseen example:"),
        "no_pad": _(
            "No drawing pad, because this model learned other pictures. "
            "Attention in the app reads yours."
        ),
        "picture": _("Picture"),
        "ready": _("The answer appears here. The first one takes a few seconds."),
        "loading": _("Loading the model …"),
        "failed": _("This browser can't run the model."),
        "nothing": _("Type at least one word."),
        "unknown": _("The model doesn't know “{word}”. Try {some}."),
        "long": _("{n} tokens; the limit is {most}. Shorten the text."),
        "sure": _("Each token's probability is below it."),
        "silent": _("The model writes nothing."),
        **board_words(),
    }


_GALLERY_STYLES = (
    "focus.css",
    "shared.css",
    "stage.css",
    "data_table.css",
    "film.css",
    "gallery.css",
)
START = "pip install -r requirements.txt -c constraints.txt && streamlit run app.py"
INDEX_PAGE = "index.html"
FIRST_RUN = "recorded-korean"
"""The run on stage."""
NOT_FOUND_PAGE = "404.html"
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
    """Write the gallery, without the damaged runs, and the page of missing addresses."""
    runs = [run for run in runs if run.problem is None]
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / INDEX_PAGE, gallery_page(runs))
    write_bytes(folder / NOT_FOUND_PAGE, missing_page([run.id for run in runs]))


def write_run(folder: Path, run: Run) -> None:
    (folder / run.id).mkdir(parents=True, exist_ok=True)
    page = film(run, with_model=False, is_public=True, gallery="../")
    write_bytes(folder / run.id / INDEX_PAGE, page)


def gallery_page(runs: Sequence[Run]) -> bytes:
    """Return the gallery; the first run is on stage."""
    title, on_stage = _("Watch a Transformer learn"), runs[0]
    name = run_words.name(on_stage)
    problem = _("The runs didn't load. Reload the page.")
    unknown = _("The run in this link is not here.")
    about = _("{n} runs of small, real models, recorded step by step.", n=len(runs))
    body = [
        f'<header class="top"><div><h1>{escape(title)}</h1><p class="about">{escape(about)}</p>',
        f'</div><a href="#what">{escape(_("About this site"))}</a>',
        f'<button type="button" class="small" id="theme">{escape(_("Switch theme"))}</button>',
        f'</header><p class="said" id="unknown" role="status" hidden>{escape(unknown)}</p>',
        f'<p id="problem" hidden>{escape(problem)}</p>',
        f"<noscript><p>{escape(_('Turn on JavaScript to play the runs.'))}</p></noscript>",
        f'<main><section class="first"><h2><a href="{on_stage.id}/">{escape(name)}</a>',
        f'<span class="about">{escape(run_words.learns(on_stage))}</span></h2>',
        f'<div id="hero" data-at="{on_stage.id}/"><div class="stage"></div></div></section>',
        f'<section id="all"><h2>{escape(_("All recorded runs"))}</h2><div class="cards">',
        *map(_card, runs),
        f"</div></section>{_site_notes()}</main>",
        f'<a id="home" hidden href="./" data-runs="{" ".join(run.id for run in runs)}"></a>',
    ]
    return _site_page(title, body, f'<meta name="description" content="{escape(about)}">')


def missing_page(names: Sequence[str], root: str = "./") -> bytes:
    """Return the page of an address that leads nowhere.

    names: of the runs that there are. root: the address of the gallery, with a slash at its end.
    """
    title = _("Page not found")
    body = [
        f'<header class="top"><div><h1>{escape(title)}</h1></div></header>',
        '<main><p class="said">',
        escape(_("This link needs the whole app; this site only shows recorded runs.")),
        f'</p><p><a id="home" class="on" href="{escape(root)}" data-runs="{" ".join(names)}">'
        f"{escape(_('See the recorded runs'))}</a></p>{_site_notes()}</main>",
    ]
    return _site_page(title, body, '<meta name="robots" content="noindex">')


def _site_page(title: str, body: Sequence[str], meta: str) -> bytes:
    return html_page(
        title,
        body,
        styles=_GALLERY_STYLES,
        scripts=[bundled("gallery.js")],
        policy={"connect-src": "'self'"},
        head=['<link rel="icon" href="data:,">', meta],
        body_class="gallery",
    )


def _card(run: Run) -> str:
    n_parameters = runs_access.curves(run).started.get("n_parameters", 0)
    facts = [
        _("{n} parameters", n=show.count(n_parameters)),
        run_words.progress(run_words.reached(run)),
        _("trained {time}", time=show.duration(run.status.seconds)),
    ]
    curve = run_words.sparkline_svg(run)
    return (
        f'<article class="card"><div class="film" data-at="{run.id}/" inert>'
        '<div class="stage"></div></div>'
        f'<h3><a href="{run.id}/">{escape(run_words.name(run))}</a></h3>'
        f'<p class="about">{escape(run_words.learns(run))}</p>'
        f'<p class="reached">{escape(run_words.result(run))}</p><div class="below">'
        f'<span class="about">{escape(" · ".join(facts))}</span>'
        f'<span role="img" aria-label="{escape(run_words.sparkline_name(run))}">{curve}</span>'
        "</div></article>"
    )


def _site_notes() -> str:
    done = _("Curves, answers and maps were recorded while PyTorch trained the models.")
    not_done = _("To train, run the whole app with Python 3.11 or newer:")
    return (
        f'<section id="what"><h2>{escape(_("About this site"))}</h2>'
        f"<p>{escape(done)}</p><p>{escape(not_done)}</p><pre><code>{escape(START)}</code></pre>"
        "</section>"
    )

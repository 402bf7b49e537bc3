"""A run as one page: the stage with all its data, and optionally the model.

Everything is in the page, and its policy forbids all requests. It plays the scripts of the app's
stage; data are gzipped, which browsers decompress.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from pages.components.files import FOLDER, bundled
from pages.components.html_page import html_page
from pages.i18n import _

MAX_BYTES = 5_000_000
"""The limit of a page without the model."""
_STYLES = (
    "focus.css",
    "packed.css",
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


@dataclass(frozen=True, slots=True)
class View:
    """The packed snapshots of one kind of attention and one example."""

    kind: int
    example: int
    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """The model of a page. onnx: the file; sizes: of its inputs by name, None for any.

    told: of ``export.asking``. examples: each ``text`` and ``tokens``, or ``picture``, an address,
    and ``pixels``, base64.
    """

    onnx: bytes
    sizes: Mapping[str, Sequence[int | None]]
    told: Mapping[str, Any]
    examples: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Film:
    """What a page shows.

    about: text below the title. stage: of ``stage.told``. views: one for each kind of attention and
    example; first: index of the initial view. moments: steps and sentences. tables: captions and
    rows. gallery: the address of the gallery that it is part of. reload: seconds after which the
    page reloads itself, 0 for never.
    """

    title: str
    about: str
    stage: Mapping[str, Any]
    views: Sequence[View]
    first: int
    moments: Sequence[tuple[int, str]]
    tables: Sequence[tuple[str, Rows]]
    asked: Asked | None = None
    gallery: str = ""
    reload: int = 0


def page(film: Film) -> bytes:
    """Return the page, UTF-8."""
    scripts, policy, head = [bundled("film.js")], dict[str, str](), list[str]()
    parts = {f"view-{n}": _zipped(view.content) for n, view in enumerate(film.views)}
    parts["film"] = _zipped(json.dumps(_told(film)).encode())
    if film.asked is not None:  # WebAssembly, opened from a ``blob:`` of the page's own
        scripts.insert(0, _RUNTIME_SCRIPT.read_text(encoding="utf-8").partition("\n//# source")[0])
        parts["model"] = _zipped(film.asked.onnx)
        parts["runtime"] = _RUNTIME_WASM.read_bytes()
        policy = {"script-src": "'wasm-unsafe-eval'", "connect-src": "blob:"}
    if film.reload:
        head.append(f'<meta http-equiv="refresh" content="{film.reload}">')
    if film.gallery:  # from a web server, which browsers ask for an icon
        head.append('<link rel="icon" href="data:,">')
    return html_page(
        film.title,
        [*_body(film), *(_part(name, content) for name, content in parts.items())],
        styles=_STYLES,
        scripts=scripts,
        policy=policy,
        head=head,
    )


def model_bytes(weights: int) -> int:
    """Return about how many bytes a model adds to a page. weights: its own bytes."""
    runtime = _RUNTIME_WASM.stat().st_size + _RUNTIME_SCRIPT.stat().st_size
    return round((runtime + weights) * 4 / 3)


def _told(film: Film) -> Mapping[str, Any]:
    views = [{"kind": view.kind, "example": view.example, "name": view.name} for view in film.views]
    first = [film.views[film.first].kind, film.views[film.first].example] if film.views else [0, 0]
    asking = None
    if film.asked is not None:
        asking = {
            "told": film.asked.told,
            "sizes": film.asked.sizes,
            "examples": film.asked.examples,
            "words": _words(),
        }
    return {"stage": film.stage, "views": views, "first": first, "asking": asking}


def _body(film: Film) -> list[str]:
    happened = "".join(
        f'<li><b>{escape(_step(step))}</b><button type="button" class="small" data-step="{step}">'
        f"{escape(_step(step))}</button><span>{escape(words)}</span></li>"
        for step, words in film.moments
    )
    return [
        f'<header class="top"><div><h1>{escape(film.title)}</h1>',
        f'<p class="about">{escape(film.about)}</p></div>',
        f'<a href="#asking">{escape(_("Ask the model"))}</a>' if film.asked else "",
        f'<a href="{film.gallery}">{escape(_("All recorded trainings"))}</a>'
        if film.gallery
        else "",
        f'<button type="button" class="small" id="theme">{escape(_("Switch theme"))}</button>',
        "</header>",
        f'<p id="problem" role="alert" hidden>{escape(_problem())}</p>',
        f"<noscript><p>{escape(_('Turn on JavaScript to play the training.'))}</p></noscript>",
        '<main><div id="stage"><div class="stage"></div></div>',
        f'<section id="asking" hidden><h2>{escape(_("Ask the model"))}</h2></section>',
        *(
            [
                f'<section><h2>{escape(_("What happened"))}</h2><ul class="happened">{happened}'
                "</ul></section>"
            ]
            if happened
            else []
        ),
        f'<section><h2>{escape(_("Settings and versions"))}</h2><div class="tables">',
        *(_table(caption, rows) for caption, rows in film.tables),
        "</div></section></main>",
    ]


def _step(step: int) -> str:
    return _("Step {step}", step=f"{step:,}")


def _problem() -> str:
    return _("This page needs a browser from 2023 or later.")


def _table(caption: str, rows: Rows) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{body}</tbody></table>"


def _part(name: str, content: bytes) -> str:
    packed = base64.b64encode(content).decode()
    return f'<script type="text/plain" id="part-{name}">{packed}</script>'


def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def _words() -> dict[str, str]:
    return {
        "type": _("Type words that it knows"),
        "ask": _("Answer"),
        "go_on": _("Continue"),
        "examples": _("Try an unseen example:"),
        "or_examples": _("Or try an unseen example:"),
        "no_pad": _(
            "No drawing pad: this model learned other pictures. The app’s page Attention reads "
            "yours."
        ),
        "picture": _("Picture"),
        "ready": _("The answer appears here; the first takes a few seconds."),
        "loading": _("Loading the model …"),
        "failed": _("The model cannot run in this browser."),
        "nothing": _("Type at least one word."),
        "unknown": _("The model does not know “{word}”. Try {some}."),
        "long": _("{n} tokens; the limit is {most}. Shorten the text."),
        "sure": _("Below each token: its probability."),
        "silent": _("The model writes nothing."),
        "clear": _("Clear"),
        "undo": _("Undo"),
        "hint": _("Draw a digit here"),
        "pad": _("Drawing pad for one digit"),
    }

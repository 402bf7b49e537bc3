"""A run as one page: the stage with all its data, and optionally the model.

Everything is in the page, and its policy forbids all requests. It plays the scripts of the app's
stage; data are gzipped, which browsers decompress.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from pages.components.files import FOLDER, bundled, joined
from pages.i18n import _, language
from tfm_core.plots.palette import BACKGROUNDS, BLUE, CARDS, INKS, LINES, LINKS, ThemeName

MAX_BYTES = 5_000_000
"""The limit of a page without the model."""
_FONT = (
    "Inter, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', 'Noto Sans KR', "
    "'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
)
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

_WASM, _NONE = " 'wasm-unsafe-eval'", "'none'"

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
    rows.
    """

    title: str
    about: str
    stage: Mapping[str, Any]
    views: Sequence[View]
    first: int
    moments: Sequence[tuple[int, str]]
    tables: Sequence[tuple[str, Rows]]
    asked: Asked | None = None


def page(film: Film) -> bytes:
    """Return the page, UTF-8."""
    style = "\n".join([colours(), joined(*_STYLES)])
    scripts = [bundled("film.js")]
    parts = {f"view-{n}": _zipped(view.content) for n, view in enumerate(film.views)}
    parts["film"] = _zipped(json.dumps(_told(film)).encode())
    if film.asked is not None:
        scripts.insert(0, _RUNTIME_SCRIPT.read_text(encoding="utf-8").partition("\n//# source")[0])
        parts["model"] = _zipped(film.asked.onnx)
        parts["runtime"] = _RUNTIME_WASM.read_bytes()
    lines = [
        f'<!doctype html><html lang="{language()}"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts, style, film)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(film.title)}</title><style>{style}</style></head><body>",
        *_body(film),
        *(_part(name, content) for name, content in parts.items()),
        *(f"<script>{script}</script>" for script in scripts[:-1]),
        f'<script type="module">{scripts[-1]}</script></body></html>',
    ]
    return "\n".join(lines).encode()


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


def _policy(scripts: Sequence[str], style: str, film: Film) -> str:
    """Return the Content-Security-Policy: only what is in the page itself.

    A model is WebAssembly, opened from a ``blob:`` of the page's own.
    """
    allowed = " ".join(_hashed(script) for script in scripts)
    runs = film.asked is not None
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {allowed}{_WASM if runs else ''}",
            f"style-src {_hashed(style)}",
            "img-src data: blob:",
            f"connect-src {'blob:' if runs else _NONE}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def colours() -> str:
    """Return the CSS colours of both themes."""
    light, dark = _theme("light"), _theme("dark")
    fixed = f"--st-font: {_FONT}; --st-primary-color: {BLUE}; --st-button-radius: 8px;"
    return (
        f":root {{ {fixed} {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
        f"@media print {{ :root, :root[data-theme] {{ {light} }} }}"
    )


def _theme(name: ThemeName) -> str:
    values = {
        "text-color": INKS[name],
        "background-color": BACKGROUNDS[name],
        "secondary-background-color": CARDS[name],
        "border-color": LINES[name],
        "link-color": LINKS[name],
    }
    variables = "".join(f"--st-{part}: {value}; " for part, value in values.items())
    return f"{variables} color-scheme: {name};"


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

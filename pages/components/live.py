"""The page of a published run: one HTML file, a script and a style sheet that never change.

It plays the very scripts of the app's stage. All that it says of the run it reads from files beside
it, and puts on the page as text; its policy forbids it every other host, and every script but its
own.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from html import escape

from pages.components.files import bundled, joined
from pages.components.film import colours
from pages.i18n import _, language
from tfm_core.publish.folder import tag

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)
"""What a page may do."""

STYLES = {
    "live": ("packed.css", "stage.css", "film.css", "live.css"),
    "gallery": ("packed.css", "stage.css", "film.css", "gallery.css"),
}
"""Kinds of pages, each with a script of its name."""


@dataclass(frozen=True, slots=True)
class Static:
    """The files that every page of a kind has. version: changes when one of them does."""

    version: str
    script: str
    style: str
    contents: dict[str, bytes]


@cache
def static(kind: str) -> Static:
    """Return script and style sheet by their names, and each compressed, beside it.

    kind: of page, ``live`` or ``gallery``.
    """
    script = bundled(f"{kind}.js").encode()
    style = "\n".join([colours(), joined(*STYLES[kind])]).encode()
    names = f"{kind}-{tag(script)}.js", f"{kind}-{tag(style)}.css"
    contents = dict(zip(names, (script, style), strict=True))
    for name in names:
        contents[f"{name}.gz"] = gzip.compress(contents[name], 9, mtime=0)
    return Static(tag(script, style), *names, contents)


def head(title: str, files: Static, root: str = "", marks: str = "") -> list[str]:
    """Return how a page begins, up to its body.

    root: what stands before the names of its files. marks: attributes of the whole page.
    """
    return [
        f'<!doctype html><html lang="{language()}"{marks}><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">',
        f'<meta name="page" content="{files.version}"><title>{escape(title)}</title>',
        f'<link rel="stylesheet" href="{root}{files.style}">',
        f'<script type="module" src="{root}{files.script}"></script>',
    ]


def page(title: str, *, is_recorded: bool = False) -> bytes:
    """Return the HTML, UTF-8. title: of the run, for who shows the link before anybody follows.

    is_recorded: one of a gallery, which plays by itself and never goes on; what all pages of its
    kind have lies above it.
    """
    unreachable = _("The training cannot be reached now. This page goes on trying.")
    gallery = f'<a href="../">{escape(_("All recorded trainings"))}</a>' if is_recorded else ""
    lines = [
        *head(title, static("live"), *(("../", " data-recorded") if is_recorded else ())),
        "</head><body>" if is_recorded else '<meta name="robots" content="noindex"></head><body>',
        f'<header class="top"><div><h1 id="title">{escape(title)}</h1>',
        '<p class="about" id="about"></p></div><span id="state" role="status"></span>',
        f'{gallery}<button type="button" class="small" id="theme">{escape(_("Light or dark"))}',
        '</button></header><p id="said" role="status"></p>',
        f'<p id="problem" hidden>{escape(unreachable)}</p>',
        f"<noscript><p>{escape(_('The training plays where scripts may run.'))}</p></noscript>",
        '<main><div id="stage"><div class="stage"></div></div>',
        '<section id="happened" hidden><h2 id="happened-title"></h2>',
        '<ul class="happened" id="moments"></ul></section>',
        '<section id="settings" hidden><h2 id="settings-title"></h2>',
        '<div class="tables" id="tables"></div></section></main></body></html>',
    ]
    return "\n".join(lines).encode()


def words() -> dict[str, str]:
    """Return what the page says beside the stage."""
    return {
        "theme": _("Light or dark"),
        "happened": _("What happened"),
        "settings": _("Settings and versions"),
        "step": _("Step {step}"),
        "silent": _(
            "Nothing new for {time}: the training, or what publishes it, may have been stopped. "
            "This page goes on asking."
        ),
        "seconds": _("{n} seconds"),
        "minutes": _("{n} minutes"),
        "unreachable": _("The server cannot be reached now. This page goes on trying."),
        "gone": _("This training is no longer published here. What is shown is what was read."),
    }

"""All heads and the lines of one as a page of its own: plays offline, with the same scripts.

What the components get from Streamlit, the page brings along: the bytes, as base64, and the colours
of the theme.
"""

from __future__ import annotations

import base64
from html import escape

from pages.components.files import bundled, joined
from tfm_core.plots.palette import BACKGROUNDS, BLUE, CARDS, INKS, LINES, ThemeName

_FONT = "Inter, 'Noto Sans KR', 'Apple SD Gothic Neo', 'Malgun Gothic', system-ui, sans-serif"
_STYLES = ("packed.css", "head_grid.css", "head_lines.css")


def standalone(
    grid: bytes, lines: bytes | None, *, title: str, words: str, which: str, theme: ThemeName
) -> bytes:
    """Return a self-contained page, UTF-8.

    grid, lines: of ``head_grid.pack`` and ``head_lines.pack_lines``. title, words, which: plain
    text; ``which`` names the head of the lines.
    """
    colours = {
        "font": _FONT,
        "text-color": INKS[theme],
        "background-color": BACKGROUNDS[theme],
        "secondary-background-color": CARDS[theme],
        "border-color": LINES[theme],
        "primary-color": BLUE,
    }
    variables = "".join(f"--st-{name}: {value}; " for name, value in colours.items())
    style = joined(*_STYLES)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(title)}</title>",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>:root {{ {variables} }} body {{ margin: 1.5rem; background: "
        "var(--st-background-color); color: var(--st-text-color); font-family: var(--st-font); }"
        " main { display: flex; flex-wrap: wrap; gap: 2rem; } main > div { flex: 1 1 320px; "
        f"min-width: 0; }}\n{style}</style></head><body>",
        f"<h1>{escape(title)}</h1><p>{escape(words)}</p>",
        '<main><div id="grid"><div class="heads"></div></div>',
        f'<div id="one"><h2 id="which">{escape(which)}</h2><div class="lines"></div></div></main>',
        _data("grid-data", grid),
    ]
    if lines is not None:
        parts.append(_data("lines-data", lines))
    parts.append(f'<script type="module">{bundled("standalone.js")}</script>')
    return "\n".join([*parts, "</body></html>"]).encode()


def _data(name: str, content: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{base64.b64encode(content).decode()}</script>'

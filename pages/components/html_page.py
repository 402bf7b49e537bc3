"""HTML pages that carry their scripts and style sheets, and whose policy forbids all others."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType

from pages.components.files import joined
from pages.i18n import language
from tfm_core.plots.palette import BACKGROUNDS, BLUE, CARDS, INKS, LINES, LINKS, ThemeName

_FONT = (
    "Inter, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', 'Noto Sans KR', "
    "'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
)


def html_page(
    title: str,
    body: Sequence[str],
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    policy: Mapping[str, str] = MappingProxyType({}),
    head: Sequence[str] = (),
    body_class: str = "",
) -> bytes:
    """Return a page, UTF-8.

    styles: names of style sheets. scripts: the code; the last one is a module. policy: additions to
    the Content-Security-Policy, which otherwise allows only what is in the page. head: more tags.
    """
    light, dark = _theme("light"), _theme("dark")
    fixed = f"--st-font: {_FONT}; --st-primary-color: {BLUE}; --st-button-radius: 8px;"
    colours = (
        f":root {{ {fixed} {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
        f"@media print {{ :root, :root[data-theme] {{ {light} }} }}"
    )
    style = "\n".join([colours, joined(*styles)])
    rules = _policy(scripts, style, policy)
    lines = [
        f'<!doctype html><html lang="{language()}"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        *head,
        f"<title>{escape(title)}</title><style>{style}</style></head>",
        f'<body class="{body_class}">',
        *body,
        *(f"<script>{script}</script>" for script in scripts[:-1]),
        f'<script type="module">{scripts[-1]}</script></body></html>',
    ]
    return "\n".join(lines).encode()


def _policy(scripts: Sequence[str], style: str, more: Mapping[str, str]) -> str:
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(_hashed(script) for script in scripts),
        "style-src": _hashed(style),
        "img-src": "data: blob:",
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    for name, allowed in more.items():
        rules[name] = allowed if rules[name] == "'none'" else f"{rules[name]} {allowed}"
    return "; ".join(f"{name} {allowed}" for name, allowed in rules.items())


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


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

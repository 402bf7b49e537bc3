"""Truth, teacher forcing and free running as a table, a column a token; drawn as HTML, to wrap."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from tfm_core.inspect.writing.beside import BesideTruth, Said
from tfm_core.plots.language import visible
from tfm_core.plots.palette import COLOURS


def beside_table(found: BesideTruth, words: Mapping[str, str]) -> str:
    """Return HTML: a row each for truth, teacher forcing and free running; the parting is marked.

    words: of the rows (``place``, ``truth``, ``taught``, ``free``) and of the mark (``parts``).
    """
    at = found.parts_at
    heads = "".join(
        f'<th scope="col"{_part(n, at)}>{n + 1}{_mark(words["parts"]) if n == at else ""}</th>'
        for n in range(len(found.places))
    )
    truth = "".join(_cell(place.truth, None, n, at) for n, place in enumerate(found.places))
    taught = "".join(
        _cell(place.taught, place.is_taught_right, n, at) for n, place in enumerate(found.places)
    )
    free = "".join(
        _cell(place.free, place.is_free_right, n, at) for n, place in enumerate(found.places)
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(words[name])}</th>{cells}</tr>'
        for name, cells in (("truth", truth), ("taught", taught), ("free", free))
    )
    return (
        f'{_STYLE}<div class="tfm-beside"><table><tr><th scope="row">{escape(words["place"])}</th>'
        f"{heads}</tr>{rows}</table></div>"
    )


def _cell(said: Said | None, is_right: bool | None, n: int, at: int | None) -> str:
    if said is None:
        return f"<td{_part(n, at)}></td>"
    kind = {None: "", True: "good", False: "bad"}[is_right]
    tick = {None: "", True: " ✓", False: " ✗"}[is_right]
    share = f"{100 * said.chance:.1f} %"
    if said.chance < 0.001:
        share = "&lt; 0.1 %"
    elif said.chance >= 0.9995:
        share = "&gt; 99.9 %"
    return (
        f'<td class="{kind}{" parts" if n == at else ""}">'
        f"<b>{escape(visible(said.token))}</b>{tick}<br><small>{share}</small></td>"
    )


def _part(n: int, at: int | None) -> str:
    return ' class="parts"' if n == at else ""


def _mark(words: str) -> str:
    return f"<br><small>▼ {escape(words)}</small>"


_STYLE = f"""<style>
.tfm-beside {{ overflow-x: auto; }}
.tfm-beside table {{ border-collapse: collapse; font-size: 0.92rem; }}
.tfm-beside td, .tfm-beside th {{ padding: 4px 9px; text-align: center; vertical-align: top;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }}
.tfm-beside th[scope=row] {{ text-align: left; font-weight: 400; max-width: 15rem; opacity: 0.85;
  min-width: 7rem; }}
.tfm-beside .good b {{ color: inherit; }}
.tfm-beside .bad {{ background: color-mix(in srgb, {COLOURS["wrong"]} 18%, transparent); }}
.tfm-beside .parts {{ border-left: 3px solid {COLOURS["wrong"]}; }}
</style>"""

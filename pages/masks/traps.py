"""Traps of masks, shown on purpose, on the tokens of the lab."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import streamlit as st

from pages.i18n import _, content, paragraph
from pages.masks.controls import MaskChoice
from pages.ui import show, state
from tfm_core.inspect.masks import code as mask_code
from tfm_core.inspect.masks import traps
from tfm_core.inspect.masks.lab import MASKS, PAD_TOKEN, Array, MaskedAttention, Projected
from tfm_core.mistakes import MISTAKES
from tfm_core.plots.heads import attention as plots
from tfm_core.probe.types import Bools


def code(
    choice: MaskChoice, projected: Projected, flow: MaskedAttention, *, was_clicked: bool
) -> None:
    """Show code that makes this mask, turns it into the other form and hands it to PyTorch."""
    show.prose(content("masks_conventions"))
    st.dataframe(
        [
            {
                _("where"): _(convention.where),
                _("True means"): _(convention.true_means),
                _("shape"): convention.shape,
                _("a float mask is"): _(convention.additive),
            }
            for convention in mask_code.CONVENTIONS
        ],
        hide_index=True,
        width="stretch",
    )
    left, right = st.columns(2)
    with left:
        st.header(_("This mask: bool, True = may attend"), anchor=False)
        made = mask_code.snippet(
            choice.kind,
            projected.query,
            projected.key,
            window=choice.window,
            prefix=choice.prefix,
            segments=choice.segments,
        )
        st.code(mask_code.literal(flow.allowed) if was_clicked else made, language="python")
        st.header(_("Additive form, and back"), anchor=False)
        st.code(mask_code.ADDITIVE, language="python")
    with right:
        st.header(_("Scaled dot-product attention: True = may attend"), anchor=False)
        st.code(mask_code.HOUSE_SDPA, language="python")
        st.header(_("nn.MultiheadAttention: True = forbidden"), anchor=False)
        st.code(mask_code.HOUSE_MHA, language="python")


def wrong_axis(
    choice: MaskChoice, projected: Projected, rest: Bools, clicked: Collection[tuple[int, int]]
) -> None:
    """Show padding masked as keys, and by mistake as queries, under the rest of the mask."""
    _explain("padding-on-queries")
    try:
        if len(projected.query) != len(projected.key):
            raise ValueError(_("This needs self-attention: choose any mask but cross-attention."))
        is_padding = np.array([token == PAD_TOKEN for token in projected.key])
        found = traps.wrong_axis(projected, is_padding, rest, clicked)
    except ValueError as error:
        st.info(_(error), icon=":material/info:")
        return
    (wrong, leaked), (alone, leaked_alone) = found["wrong"], found["alone"]
    maps = {_("Keys masked: right"): found["right"][0], _("Queries masked: wrong"): wrong}
    captions = [
        _("The columns of padding are empty."),
        paragraph("masks/leak", leaked=show.percent(leaked))
        if leaked
        else paragraph("masks/no-leak"),
    ]
    if not leaked and leaked_alone:
        maps[_("Queries masked: padding half alone")] = alone
        captions.append(paragraph("masks/leak-in-encoder", leaked=show.percent(leaked_alone)))
    _side_by_side(maps, projected.query, projected.key, captions, "axis")
    if choice.kind in {"none", "causal"}:
        st.caption(
            _(
                "“{mask}” ignores padding; the maps here add a padding mask.",
                mask=_(MASKS[choice.kind].label),
            )
        )


def float_mask(projected: Projected, flow: MaskedAttention) -> None:
    """Show a mask as bool, and by mistake as numbers, which are added to the scores."""
    _explain("float-mask")
    try:
        right, wrong, share = traps.float_mask(projected, flow.allowed)
    except ValueError as error:
        st.info(_(error), icon=":material/info:")
        return
    maps = {_("Bool: right"): right, _("Float, added: wrong"): wrong}
    leaked = show.percent(share)
    captions = [
        _("Forbidden keys have no weight."),
        _("Queries spend {leaked} of their attention on forbidden keys.", leaked=leaked),
    ]
    _side_by_side(maps, projected.query, projected.key, captions, "float")


def _explain(name: str) -> None:
    """Show what a mistake is, and the code as it should be and as it is written."""
    mistake = MISTAKES[name]
    st.markdown(_(mistake.help))
    st.code(f"{mistake.right}  # right\n{mistake.wrong}", "python", wrap_lines=True)


def half_precision(projected: Projected, flow: MaskedAttention) -> None:
    show.prose(content("masks_precision"))
    query = traps.mixed_row(flow.allowed)
    allowed = np.arange(len(projected.key)) < (len(projected.key) + 1) // 2
    words = _("Scores of the first query, half of its keys forbidden, in each type.")
    if query is not None:
        allowed = flow.allowed[query]
        token = projected.query[query]
        words = _("Scores of query {n}, `{token}`, in each type.", n=query + 1, token=token)
    results = traps.precision(projected.scores[query or 0], allowed)
    fills = {"lowest": _("the type's lowest number"), "-inf": "−∞", "-1e9": "−1e9", "-1e4": "−1e4"}
    st.table(
        {
            _("masked with"): [fills[fill] for fill in traps.FILLS],
            **{
                name: [_(result.verdict) for result in results if result.dtype == name]
                for name in traps.TYPES
            },
        },
        hide_index=True,
        border="horizontal",
    )
    st.caption(words + " " + paragraph("masks/types"))
    with st.expander(_("All the numbers")):
        _every_number(results, fills)


def _every_number(results: Sequence[traps.FillResult], fills: Mapping[str, str]) -> None:
    rows = [
        {
            _("type"): result.dtype,
            _("masked with"): fills[result.fill],
            _("stored as"): _("refused") if result.stored is None else _short(result.stored),
            _("leak"): "–" if result.stored is None else _short(result.leak),
            _("all forbidden"): _weights(result.blind),
            _("forbidden twice"): _weights(result.twice),
        }
        for result in results
    ]
    st.dataframe(rows, hide_index=True, width="stretch", height="content")
    st.caption(_("Leak: largest weight of a forbidden key. Twice: two masks added."))


def blind_row(projected: Projected, flow: MaskedAttention) -> None:
    """Show a fully masked row under each way to compute the softmax."""
    show.prose(content("masks_blind_row"))
    query = flow.blind[0] if flow.blind else 0
    maps = traps.blind_row(projected, query)
    names = {
        "naive": _("−∞, then softmax"),
        "-1e9": _("−1e9, then softmax"),
        "ours": _("this app"),
    }
    here, later = traps.nan_rows(projected, query)
    _side_by_side(
        {names[name]: weights[None] for name, weights in maps.items()},
        [projected.query[query]],
        projected.key,
        [
            paragraph("masks/blind-row", here=here, later=later, n=len(projected.query)),
            _("A large negative number averages all forbidden keys."),
            _("Zeros: the token reads nothing."),
        ],
        "blind",
    )
    st.markdown(_("PyTorch on such a row:"))
    st.dataframe(
        [
            {_("module"): name, _("fully masked row"): _(words)}
            for name, words in traps.torch_blind_rows().items()
        ],
        hide_index=True,
        width="content",
    )


def _side_by_side(
    maps: Mapping[str, Array],
    query: Sequence[str],
    key: Sequence[str],
    captions: Sequence[str],
    name: str,
) -> None:
    for index, (column, title) in enumerate(zip(st.columns(len(maps)), maps, strict=True)):
        with column:
            figure = plots.weight_map(maps[title], query, key, title, state.theme())
            show.figure(figure, captions[index], key=f"masks-{name}-{index}")


def _short(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def _weights(values: tuple[float, ...]) -> str:
    if not values:
        return "–"
    if any(math.isnan(value) for value in values):
        return "NaN"
    same = max(values) - min(values) < 1e-3
    return _("all {x}", x=f"{values[0]:.3f}") if same else _("unmasked")

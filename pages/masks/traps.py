"""Three traps of masks, shown on purpose, on the tokens of the lab."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from pages.i18n import _, content
from pages.masks.controls import MaskChoice
from pages.ui import show, state
from tfm_core.inspect.masks import code as mask_code
from tfm_core.inspect.masks import traps
from tfm_core.inspect.masks.lab import PAD_TOKEN, Array, MaskedAttention, Projected
from tfm_core.plots import masks as plots


def code(
    choice: MaskChoice, projected: Projected, flow: MaskedAttention, *, was_clicked: bool
) -> None:
    """Show code that makes this mask, turns it into the other form and hands it to PyTorch."""
    st.markdown(content("masks_conventions"))
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
        st.markdown(_("**This mask**, bool, True = may attend"))
        made = mask_code.snippet(
            choice.kind,
            projected.query,
            projected.key,
            window=choice.window,
            prefix=choice.prefix,
            segments=choice.segments,
        )
        st.code(mask_code.literal(flow.allowed) if was_clicked else made, language="python")
        st.markdown(_("**Additive form**, and back"))
        st.code(mask_code.ADDITIVE, language="python")
    with right:
        st.markdown(_("**Scaled dot-product attention**: True = may attend"))
        st.code(mask_code.HOUSE_SDPA, language="python")
        st.markdown(_("**nn.MultiheadAttention**: True = forbidden"))
        st.code(mask_code.HOUSE_MHA, language="python")


def wrong_axis(projected: Projected) -> None:
    """Show padding masked as keys, and by mistake as queries."""
    st.markdown(content("masks_wrong_axis"))
    try:
        if len(projected.query) != len(projected.key):
            raise ValueError(_("This needs self-attention: choose another mask than cross."))
        is_padding = np.array([token == PAD_TOKEN for token in projected.key])
        maps = traps.wrong_axis(projected, is_padding)
    except ValueError as error:
        st.info(_(error), icon=":material/info:")
        return
    _side_by_side(
        {_("Keys masked: right"): maps.right, _("Queries masked: wrong"): maps.wrong},
        projected.query,
        projected.key,
        [
            _("The columns of padding are empty."),
            _(
                "Real tokens spend {leaked} of their attention on padding, and the rows of padding "
                "are empty instead."
            ).format(leaked=show.percent(maps.leaked)),
        ],
        "axis",
    )


def half_precision(projected: Projected) -> None:
    """Show what each number type does with the values that people mask with."""
    st.markdown(content("masks_precision"))
    row = projected.scores[0]
    rows = [
        {
            _("type"): result.dtype,
            _("masked with"): {"lowest": _("finfo.min")}.get(result.fill, result.fill),
            _("stored as"): _("refused") if result.stored is None else _short(result.stored),
            _("leak"): "–" if result.stored is None else _short(result.leak),
            _("all forbidden"): _weights(result.blind),
            _("forbidden twice"): _weights(result.twice),
            _("what to expect"): _(result.verdict),
        }
        for result in traps.precision(row)
    ]
    st.dataframe(rows, hide_index=True, width="stretch", height="content")
    st.caption(
        _(
            "The scores of the first query with its second half forbidden, computed in each type. "
            "Leak: the largest weight that a forbidden key gets. Forbidden twice: two additive "
            "masks, summed. This app fills with the lowest number of the type, once, and sets "
            "masked weights to 0 after the softmax."
        )
    )


def blind_row(projected: Projected, flow: MaskedAttention) -> None:
    """Show a row where nothing is allowed, by who computes the softmax."""
    st.markdown(content("masks_blind_row"))
    query = flow.blind[0] if flow.blind else 0
    maps = traps.blind_row(projected, query)
    names = {
        "naive": _("−inf, then softmax"),
        "-1e9": _("−1e9, then softmax"),
        "ours": _("this app"),
    }
    _side_by_side(
        {names[name]: weights[None] for name, weights in maps.items()},
        [projected.query[query]],
        projected.key,
        [
            _("0/0 is not a number, and it spreads to the whole output."),
            _("A large negative number attends to all that is forbidden, evenly."),
            _("Zeros: the token takes nothing over from anybody."),
        ],
        "blind",
    )
    st.markdown(_("What the PyTorch that runs here answers for such a row:"))
    st.dataframe(
        [
            {_("module"): name, _("row where nothing is allowed"): words}
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
            drawn = plots.weight_map(maps[title], query, key, title, state.theme())
            show.figure(drawn, captions[index], key=f"masks-{name}-{index}")


def _short(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return f"{value:.4g}"


def _weights(values: tuple[float, ...]) -> str:
    if not values:
        return "–"
    if any(math.isnan(value) for value in values):
        return "NaN"
    same = max(values) - min(values) < 1e-3
    return _("all {x}").format(x=f"{values[0]:.3f}") if same else _("unmasked")

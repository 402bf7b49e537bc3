"""“5 seeds”: the same again from other seeds, so that a figure gets the spread that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import starts, state, visitors
from pages.ui.run_actions import Start
from pages.ui.typed import escape
from tfm_core.inspect.compare.seeds import MAX, MIN


def draw(
    what: Callable[[], Sequence[Start]],
    *,
    key: str,
    disabled: bool = False,
    on_refused: Callable[[BaseException], None] | None = None,
) -> None:
    """Draw the button, and beside it how many seeds it asks for; a press trains what is missing.

    what: the configurations, asked when it is pressed. on_refused: says why nothing could begin,
    else a notice at the top of the page does, which stays where a part of the page ticks.
    """
    n, why_not = starts.n_seeds(), visitors.why_not()
    with st.container(horizontal=True, gap=None, width="content", key=f"seeds-{key}"):
        pressed = st.button(
            ngettext("{n} seed", "{n} seeds", n, n=n),
            icon=":material/casino:",
            key=f"{key}-seeds",
            disabled=disabled or bool(why_not),
            help=escape(why_not)
            or _(
                "Trains the missing ones of {n} seeds and compares them: mean, spread and worst.",
                n=n,
            ),
        )
        with st.popover(f":gray[{_('How many seeds')}]", key=f"{key}-seeds-how-many"):
            number = f"{key}-seeds-number"
            st.number_input(
                _("Seeds"),
                MIN,
                MAX,
                value=n,
                key=number,
                help=_("Runs of this configuration, existing ones included."),
                on_change=_take,
                args=(number,),
            )
    found = what() if pressed else []
    if found:
        try:
            starts.train_seeds(found)
        except (ValueError, OSError) as error:
            (on_refused or _notify)(error)


def _notify(error: BaseException) -> NoReturn:
    state.notify(_(error))
    st.rerun()


def _take(key: str) -> None:
    number = st.session_state.get(key)
    if isinstance(number, int):
        st.session_state[starts.SEEDS] = number

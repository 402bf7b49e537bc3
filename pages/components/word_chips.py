"""The words of a task as chips to press, and as completions of the word that is being typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from pages.components.files import bundled, joined
from pages.i18n import _

_component = st.components.v2.component(
    "word_chips",
    html='<div class="chips"></div>\n',
    css=joined("word_chips.css"),
    js=bundled("word_chips.js"),
)


def word_chips(
    groups: Mapping[str, Sequence[str]],
    *,
    field: str,
    glue: str,
    on_pick: Callable[[str], None],
    key: str,
) -> None:
    """Show words in groups, name -> words; ``on_pick`` hears the one that is pressed.

    field: the key of the text input whose last word is completed. glue: what stands between words.
    """
    known = frozenset(word for words in groups.values() for word in words)

    def picked() -> None:
        word = st.session_state.get(key, {}).get("pick")
        if isinstance(word, str) and word in known:
            on_pick(word)

    _component(
        data={
            "groups": [[name, list(words)] for name, words in groups.items()],
            "field": field,
            "glue": glue,
            "label": _("Words that the model knows: a press adds one"),
        },
        on_pick_change=picked,
        key=key,
    )

"""The words of a task as chips to press, and as completions of the word that is being typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pages.components.component import component, is_name
from pages.i18n import _

_component = component("word_chips", css=["word_chips.css"], html='<div class="chips"></div>\n')


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

    def picked(word: object) -> None:
        if is_name(word, known):
            on_pick(word)

    _component(
        {
            "groups": [[name, list(words)] for name, words in groups.items()],
            "field": field,
            "glue": glue,
            "label": _("Words that the model knows: a press adds one"),
        },
        on={"pick": picked},
        key=key,
    )

"""Attention by hand: every number from a few short vectors to the output, and back."""

from __future__ import annotations

from dataclasses import dataclass

from pages.app import show
from pages.app.address import view, view_link
from pages.i18n import N_, content
from pages.learn.by_hand import stages, words
from pages.learn.by_hand.matrices import MATRICES, SEED
from pages.learn.by_hand.words import SCOPE


@dataclass(frozen=True)
class ByHand:
    """The stage that is shown."""

    stage: str = view.choice(
        N_("Stage"),
        {
            "one-hot": N_("Words"),
            "projections": N_("Projections"),
            "heads": N_("Heads"),
            "forms": N_("Six ways"),
        },
        look={"label_visibility": "collapsed"},
    )


def page() -> None:
    """Show one stage; the link holds which, the words and their vectors."""
    show.header("by-hand")
    stage = view.ask(ByHand, SCOPE).stage
    show.prose(content(f"by_hand_{stage.replace('-', '_')}"))
    if stage == "one-hot":
        view_link.forget([SEED, *MATRICES.values()])
    elif stage == "forms":
        view_link.forget([stages.AT])
    try:
        given = words.given(stage)
        {
            "one-hot": stages.one_hot,
            "projections": stages.projections,
            "heads": stages.heads,
            "forms": stages.forms,
        }[stage](given)
    except ValueError as error:
        show.problem(error)


if __name__ == "__main__":
    with view.drawing():  # another stage has other fields
        page()

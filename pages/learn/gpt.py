"""Writing: a GPT reads a text, writes on, is looked through layer by layer, and adds."""

from __future__ import annotations

from pages.ui import (
    gpt_lens,
    gpt_own,
    gpt_read,
    gpt_run,
    gpt_sum,
    gpt_write,
    linked,
    run_words,
    show,
)
from pages.ui.words import _

_PARTS = {
    "read": _("Read"),
    "write": _("Write"),
    "lens": _("Lens"),
    "add": _("Add"),
    "train": _("Own text"),
}


def page() -> None:
    """Show one part, for the current run where it fits."""
    show.header("gpt")
    part = linked.choice(_("Part"), _PARTS, key="gpt-part", query="part", is_labelled=False)
    try:
        if part == "train":
            gpt_own.part()
        elif part == "add":
            gpt_run.with_run(gpt_run.ADDITION, gpt_sum.part)
        else:
            shown = {"write": gpt_write.part, "lens": gpt_lens.part}.get(part, gpt_read.part)
            gpt_run.with_run(gpt_run.LANGUAGE, shown)
    except ValueError as error:
        show.problem(run_words.escape(str(error)))


page()

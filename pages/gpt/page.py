"""Writing: a GPT reads, writes, shows its layers, and adds."""

from __future__ import annotations

from pages.gpt import lens, own, read, run, write
from pages.gpt.run import PART
from pages.i18n import _
from pages.ui import show
from pages.ui.address import view_link


def page() -> None:
    show.header("gpt")
    part = view_link.choice(_("Part"), PART, is_labelled=False)
    try:
        if part == "train":
            own.part()
        elif part == "add":
            run.with_run(run.ADDITION, lens.sum_part)
        else:
            shown = {"write": write.part, "lens": lens.part}.get(part, read.part)
            run.with_run(run.LANGUAGE, shown)
    except ValueError as error:
        show.problem(error)


page()

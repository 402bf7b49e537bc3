"""What ``look`` returns: what a forward pass showed, and what can be made of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tfm_core.looking.seen import Seen

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tfm_core.plots.palette import ThemeName
    from tfm_core.runs.notebook import OpenedRun


class Look(Seen):
    """What a forward pass showed: its maps as figures, as a file, and as a run of the app."""

    __slots__ = ()

    def figure(
        self,
        name: str | int | None = None,
        *,
        head: int | None = None,
        example: int = 0,
        theme: ThemeName = "light",
    ) -> go.Figure:
        """Return a figure of one map, by the name of its module; without one, of the first.

        head: from 0, which the title and the app call head 1; None for the mean of all. example: of
        the batch, from 0. Raises StudentError.
        """
        from tfm_core.looking.shown import figure

        return figure(self, self.map(name), head=head, example=example, theme=theme)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the maps, their masks and names to a file, which ``look.load`` and the app open.

        It is a safetensors file; what the model returned is not in it. Raises OSError.
        """
        from tfm_core.looking.file import save

        return save(self, path)

    def open(self, *, name: str | None = None) -> OpenedRun:
        """Make a run of it that the app shows, among those of ``TFM_RUNS_DIR``, and return that.

        name: of the run; by default the model's. Raises ValueError, in a sentence.
        """
        from tfm_core.looking.opening import open_look
        from tfm_core.runs.notebook import OpenedRun
        from tfm_core.runs.store import RunStore

        return OpenedRun(open_look(self, RunStore(), name=name))

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: all heads, as pictures."""
        from tfm_core.looking.shown import page_part

        return page_part(self)

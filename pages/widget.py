"""A run or a look in a notebook: the app's own stage, without a server and without a network.

    from pages import widget
    widget.show("recorded-korean")
    widget.show(tfm_core.look(model, ids))

It is the replay page of the run (``pages.app.runs.film``) in a frame. Needs anywidget
(requirements-notebook.txt). A saved notebook keeps a picture of the heads of the last layers.
"""

from __future__ import annotations

import importlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pages.app.runs import film
from tfm_core.inspect.attention.maps import MapView
from tfm_core.plots.export import map_svg
from tfm_core.plots.heads.attention import usual_top
from tfm_core.probe.labels import axes, kind_of, modules_by_kind, rows
from tfm_core.probe.masks import cut
from tfm_core.runs.notebook import OpenedRun, open_run
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from tfm_core.looking.result import Look

_SCRIPT = Path(__file__).parent / "components" / "notebook.js"
_MAX_HEADS = 16
"""Heads of the last layer of one kind of attention that are drawn."""


def show(run: str | Path | OpenedRun | Look, *, height: int = 640) -> Any:
    """Return the widget of a look or a run: opened, or its id, name or folder. height: in pixels.

    Raises StudentError, in a sentence, without anywidget, and for a run that cannot be shown.
    """
    try:
        anywidget = importlib.import_module("anywidget")
        traitlets = importlib.import_module("traitlets")
    except ModuleNotFoundError:
        raise StudentError("A widget needs anywidget: pip install anywidget.") from None
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # warns that there is no session
    title, page, picture = contents(run)

    class Stage(anywidget.AnyWidget):  # type: ignore[misc, name-defined]
        """The stage of a run; ``page`` is all of it."""

        _esm = _SCRIPT
        title = traitlets.Unicode("").tag(sync=True)
        page = traitlets.Unicode("").tag(sync=True)
        height = traitlets.Int(640).tag(sync=True)

        def _repr_mimebundle_(self, **options: Any) -> Any:
            bundle = super()._repr_mimebundle_(**options)
            data = bundle[0] if isinstance(bundle, tuple) else bundle
            if data is not None:
                data["text/html"] = picture
            return bundle

    return Stage(title=title, page=page, height=height)


def contents(which: str | Path | OpenedRun | Look) -> tuple[str, str, str]:
    """Return the name of a run or a look, its page, and a still picture as HTML."""
    if isinstance(which, str | Path):
        return _contents(open_run(which).run)
    if isinstance(which, OpenedRun):
        return _contents(which.run)
    opening = importlib.import_module("tfm_core.looking.opening")  # with torch, which a look has
    with tempfile.TemporaryDirectory() as folder:
        return _contents(opening.open_look(which, RunStore(Path(folder), recorded=None)))


def _contents(run: Run) -> tuple[str, str, str]:
    page = film.film(run, with_model=False).decode()
    return run.meta.name, page, "".join(svg for _kind, svg in heads(run))


def heads(run: Run) -> Iterator[tuple[str, str]]:
    """Yield kind and SVG of the heads of the last layer of each attention, on the first example."""
    steps = run.snapshot_steps()
    try:
        probe = run.probe()
        item = probe.items[0]
        snapshot = run.snapshot(steps[-1])
    except (StudentError, IndexError):  # a run that kept none, or whose files are damaged
        return
    for kind, modules in modules_by_kind(run.experiment).items():
        weights = snapshot.attention.get(modules[-1])
        if weights is None:
            continue
        names = axes(run.experiment, item, modules[-1])
        called = rows(run.experiment, item, modules[-1])
        n_queries, n_keys = names.shape
        may_attend = cut(snapshot.masks[modules[-1]], 0, names.shape)
        for head, one in enumerate(weights[0][:_MAX_HEADS, :n_queries, :n_keys], 1):
            layer = len(modules)
            view = MapView(
                one.astype("float32"),
                called.names,
                names.key,
                may_attend,
                called.title,
                kind_of(run.experiment, modules[-1]).key,
            )
            yield (
                kind,
                map_svg(
                    view,
                    top=usual_top(view.seen()),
                    title=f"{kind} attention, layer {layer}, head {head}, step {snapshot.step:,}",
                ).decode(),
            )

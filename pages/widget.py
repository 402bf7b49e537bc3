"""A run or a look in a notebook: the app's own stage, without a server and without a network.

    from pages import widget
    widget.show("recorded-korean")
    widget.show(tfm_core.look(model, ids))

It is the replay page of the run (``pages.ui.files.film``) in a frame. Needs anywidget
(requirements-notebook.txt). A saved notebook keeps a picture of the heads of the last layers.
"""

from __future__ import annotations

import importlib
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pages.ui.files import film
from tfm_core.export import figures
from tfm_core.runs.notebook import OpenedRun, open_run
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from tfm_core.looking.seen import Look

_SCRIPT = Path(__file__).parent / "components" / "notebook.js"


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
    drawn = figures.of(run, run.curves())
    svgs = [content.decode() for name, content in drawn if name.endswith(".svg")]
    return run.meta.name, page, "".join(svgs)

"""The app opened by a link, as a browser opens it: the page at once, without Home before it."""

import json
from pathlib import Path

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from pages.app.navigation.page_table import PAGES
from pages.app.settings.drafts import Draft
from tfm_core.choices.config import Experiment

FRAME = Path(__file__).resolve().parents[2] / "pages" / "frame.py"
PATIENCE = 180  # seconds: for slow machines; who does not fail does not wait so long


def opened_at(
    file: str = "home/page.py",
    *,
    draft: Experiment | None = None,
    token: str | None = None,
    user: dict[str, object] | None = None,
    url_path: str | None = None,
    **query: str,
) -> AppTest:
    """Open the page of a file below pages/ with the query of a link, and perhaps a model.

    token: of the browser, as its cookie would say it; without one it is somebody new. user: what
    ``st.user`` says. url_path: of the page, where it is not that of the file.
    """
    app = AppTest.from_file(str(FRAME), default_timeout=PATIENCE)
    if draft is not None:
        app.session_state["draft"] = Draft(draft.model_dump())
    if token is not None:
        app.session_state["visitor_token"] = token
    if user is not None:
        app.user = user
    for name, value in query.items():
        app.query_params[name] = value
    if url_path is None:
        (url_path,) = [page.url_path for page in PAGES.values() if page.file == file]
    if url_path:  # ``switch_page`` knows the pages only after a first run, which draws Home
        app._page_hash = calc_hash(url_path)
    return app.run()


def links(app: AppTest) -> list[str]:
    """Return the addresses that the strip offers to copy, the first one first."""
    components = app.get("bidi_component")
    (button,) = [one for one in components if one.proto.component_name == "copy_link"]
    return [link["href"] for link in json.loads(button.proto.json)[0]["links"]]


def address_of(app: AppTest) -> dict[str, str]:
    """Return the address as a browser shows it: AppTest has lists of what the page wrote."""
    query = dict(app.query_params)
    return {name: text if isinstance(text, str) else text[-1] for name, text in query.items()}

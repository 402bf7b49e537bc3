"""The component for figures: what it sends, and the script it needs."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest

from pages.components import live_figure
from tfm_core.sentences import N_, translated


def page() -> None:
    import numpy as np
    import plotly.graph_objects as go

    from pages.components.live_figure import live_figure

    x = np.arange(401, dtype=np.float32)
    live_figure(go.Figure([go.Scatter(x=x, y=x), go.Scatter(x=x, y=-x)]), key="curves")


def sent() -> dict:
    app = AppTest.from_function(page, default_timeout=60).run()
    assert not app.exception
    return json.loads(app.get("bidi_component")[0].proto.json)


def test_only_what_is_marked_as_a_sentence_is_translated() -> None:
    figure = go.Figure(go.Scatter(x=["weight"], y=[1], name=N_("{n} heads", n=3), text=["weight"]))
    figure.update_layout(xaxis_title=N_("weight"), title="weight")
    spoken = translated(figure.to_dict(), lambda text: f"⟦{text}⟧")
    line, layout = spoken["data"][0], spoken["layout"]
    assert (line["name"], layout["xaxis"]["title"]["text"]) == ("⟦3 heads⟧", "⟦weight⟧")
    assert (*line["x"], *line["text"], layout["title"]["text"]) == ("weight",) * 3


def test_a_tick_of_two_lines_is_small() -> None:
    assert len(sent()["figure"]) < 12_000


def test_the_browser_chooses_the_template() -> None:
    data = sent()
    assert "template" not in json.loads(data["figure"])["layout"]
    assert set(json.loads(data["templates"])) == {"light", "dark"}


def test_values_arrive_as_they_were() -> None:
    line = json.loads(sent()["figure"])["data"][1]["y"]
    values = np.frombuffer(base64.b64decode(line["bdata"]), dtype=line["dtype"])
    assert values[400] == -400


def test_the_script_is_one_that_streamlit_takes_inline() -> None:
    script = Path(live_figure.__file__).with_suffix(".js").read_text(encoding="utf-8")
    assert "\n" in script
    assert "export default function" in script


def test_a_figure_is_named_by_its_words_without_their_marks() -> None:
    def page() -> None:
        import plotly.graph_objects as go

        from pages.ui import show

        show.figure(go.Figure(), "Each **row** is one `query`.", key="named")

    app = AppTest.from_function(page, default_timeout=60).run()
    (figure,) = app.get("bidi_component")
    assert json.loads(figure.proto.json)["name"] == "Each row is one query."

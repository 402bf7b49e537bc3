"""The component for figures: what it sends, and the script it needs."""

import base64
import json

import numpy as np
import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest

from tfm_core.sentences import N_, translated


def page() -> None:
    import numpy as np
    import plotly.graph_objects as go

    from pages.components.live_figure import live_figure

    x = np.arange(401, dtype=np.float32)
    live_figure(go.Figure([go.Scatter(x=x, y=x), go.Scatter(x=x, y=-x)]), key="curves")


def sent() -> dict:
    app = AppTest.from_function(page, default_timeout=60).run()
    return json.loads(app.get("bidi_component")[0].proto.json)


def test_sentences_are_translated_lines_small_and_figures_named():
    figure = go.Figure(go.Scatter(x=["weight"], y=[1], name=N_("{n} heads", n=3), text=["weight"]))
    figure.update_layout(xaxis_title=N_("weight"), title="weight")
    spoken = translated(figure.to_dict(), lambda text: f"⟦{text}⟧")
    line, layout = spoken["data"][0], spoken["layout"]
    assert (line["name"], layout["xaxis"]["title"]["text"]) == ("⟦3 heads⟧", "⟦weight⟧")
    assert (*line["x"], *line["text"], layout["title"]["text"]) == ("weight",) * 3
    data = sent()
    assert len(data["figure"]) < 12_000
    figure = json.loads(data["figure"])
    assert "template" not in figure["layout"]
    assert set(json.loads(data["templates"])) == {"light", "dark"}
    line = figure["data"][1]["y"]
    values = np.frombuffer(base64.b64decode(line["bdata"]), dtype=line["dtype"])
    assert values[400] == -400

    def page() -> None:
        import plotly.graph_objects as go

        from pages.app import show

        show.figure(go.Figure(), "Each **row** is one `query`.", key="named")

    app = AppTest.from_function(page, default_timeout=60).run()
    (figure,) = app.get("bidi_component")
    assert json.loads(figure.proto.json)["name"] == "Each row is one query."

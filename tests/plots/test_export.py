"""What is taken away works alone: no network, no markup from tokens, no formulas."""

import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.export import csv, map_svg, map_table, page
from tfm_core.plots.palette import MASKED, SCALES

QUERY, KEY = ("<bos>", "학교", "에"), ("I", "&", "</text>", "school", "\x07")
SVG = "{http://www.w3.org/2000/svg}"


def weights_of():
    return np.random.default_rng(3).dirichlet(np.ones(5), 3).astype(np.float32)


def test_pages_and_pictures_hold_all_they_need():
    found = page(go.Figure(go.Scatter(y=[1, 2])), title="<b>Head</b>", words="Look & see").decode()
    assert "<h1>&lt;b&gt;Head&lt;/b&gt;</h1>" in found
    assert "Look &amp; see" in found
    assert len(found) > 3_000_000
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", found)
    allowed = np.tril(np.ones((3, 5), bool))
    drawn = map_svg(MapView(weights_of(), QUERY, KEY, allowed)).decode()
    assert drawn.count(f'fill="{MASKED["light"]}"') == (~allowed).sum()
    assert drawn.count("(masked)") == (~allowed).sum()
    tokens = [str(index) for index in range(512)]
    drawn = map_svg(MapView(np.eye(512), tokens, tokens))
    assert len(drawn) < 200_000
    assert b"data:image/png;base64," in drawn
    ET.fromstring(drawn)


@pytest.mark.parametrize("theme", list(SCALES))
def test_an_svg_has_a_square_for_each_cell_and_a_word_for_each_token(theme):
    weights = weights_of()
    drawn = ET.fromstring(map_svg(MapView(weights, QUERY, KEY), title="Layer <1>", theme=theme))
    squares = [cell for cell in drawn.iter(f"{SVG}rect") if cell.find(f"{SVG}title") is not None]
    assert len(squares) == 15
    assert squares[7].find(f"{SVG}title").text == f"학교 → </text>: {weights[1, 2]:.4f}"
    words = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"<bos>", "학교", "&", "</text>", "Layer <1>"} <= set(words)


def test_tables_and_csv_say_what_each_cell_is_and_no_token_is_a_formula():
    table = map_table(MapView(weights_of(), QUERY, KEY), ("a", None, "b"))
    assert table["writes"].dropna().tolist() == ["a"] * 5 + ["b"] * 5
    assert "writes" not in map_table(MapView(weights_of(), QUERY, KEY))
    weights = weights_of()
    table = map_table(MapView(weights, QUERY, KEY))
    row = table[(table["query"] == 2) & (table["key"] == 4)].iloc[0]
    assert (row["query_token"], row["key_token"]) == ("학교", "school")
    assert row["weight"] == weights[1, 3]
    assert len(table) == 15
    table = map_table(MapView(weights_of(), QUERY, ("I", "to", "a", "b", "c")))
    again = pd.read_csv(io.BytesIO(csv(table)))
    assert again["query_token"].tolist() == table["query_token"].tolist()
    np.testing.assert_allclose(again["weight"], table["weight"], rtol=1e-6)
    found = csv(pd.DataFrame({"token": ["=1+1", "+", "-", "a-b"], "n": [-1, 2, 3, 4]})).decode()
    assert found.splitlines()[1:] == ["'=1+1,-1", "'+,2", "'-,3", "a-b,4"]

"""One way to name the rows of a map, in every view, and the axis says which.

A row of cross-attention is the token being written; a row of self-attention the token that stands
on both axes.
"""

import json
from html import unescape

import pytest

from tests.inspect.constructed import constructed_run, text_experiment
from tests.pages.looking import grid, opened, said
from tfm_core.data.text.english_korean import glosses_of
from tfm_core.inspect import stage
from tfm_core.inspect.attention import alignment
from tfm_core.studies.experiments import race_of_attention

ROWS = {  # of the first example: three two -> 3 2
    "cross": (["3", "2", "<eos>"], "target token written"),
    "encoder": (["three", "two"], "source token"),
    "decoder": (["<bos>", "3", "2"], "target token so far"),
}
KIND = pytest.mark.parametrize("kind", ROWS)


def figures_on(app):
    """Return the tick labels and the title of the vertical axis of each map on a page."""
    sent = [json.loads(part.proto.json) for part in app.get("bidi_component") if part.proto.json]

    def axes(node):
        if isinstance(node, dict):
            if "ticktext" in node.get("yaxis", {}):
                yield node["yaxis"]["ticktext"], node["yaxis"]["title"]["text"]
            node = list(node.values())
        if isinstance(node, list):
            for child in node:
                yield from axes(child)
        if isinstance(node, str) and node.startswith("{") and "ticktext" in node:
            yield from axes(json.loads(node))

    return [([unescape(name) for name in names], title) for names, title in axes(sent)]


@KIND
def test_on_attention_and_on_the_stage(store, kind):
    app = opened(constructed_run(store, text_experiment()), kind=kind)
    names, title = ROWS[kind]
    assert grid(app)[0]["query"] == names
    assert (names, f"{title} (query)") in figures_on(app)
    shown = stage.read_stage(constructed_run(store, text_experiment()), kind, 0)
    assert (list(shown.maps.query), shown.maps.query_title) == ROWS[kind]


def test_before_the_transformer(store):
    run = constructed_run(store, race_of_attention("numbers").experiments["additive"])
    (called, *_rest) = alignment.cross_attention_at(run).rows
    assert (list(called.names), called.title) == ROWS["cross"]


def test_on_knockouts(store, open_page, recorded):
    app = open_page("look_inside/knockouts/page.py", run="recorded-korean", off="decoder.1.ff")
    run = store.get("recorded-korean")
    item, words = run.probe().items[0], glosses_of(run.experiment).words
    title = "target token written (query)"
    glossed = [
        f"{token} <i>{words[token]}</i>" if token in words else token for token in item["tgt"]
    ]
    assert figures_on(app).count(([*glossed, "<eos>"], title)) == 2  # before and after

    # without glosses, here and on the other pages
    app.toggle(key="knockouts-glosses").set_value(False).run()
    assert figures_on(app).count(([*item["tgt"], "<eos>"], title)) == 2
    app.switch_page("look_inside/attention/page.py").run()
    assert not app.toggle(key="attention-glosses").value
    assert ([*item["tgt"], "<eos>"], title) in figures_on(app)


def test_in_the_arithmetic_of_a_cell(store, open_page, recorded):
    app = open_page(
        "look_inside/attention/page.py",
        run="recorded-causal-mask",
        kind="cross",
        view="arithmetic",
        cell="3,1",
    )
    item = store.get("recorded-causal-mask").probe().items[0]
    row = f"3: writes {item['tgt'][2]}, after {item['tgt'][1]}"
    assert app.selectbox(key="attention-cell-query").options[2] == row
    assert f"in row “{row}”" in said(app).replace("\\", "")

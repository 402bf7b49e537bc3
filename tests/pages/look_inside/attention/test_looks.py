"""A look on the attention page: its maps and their arithmetic, and nothing that needs the model."""

import torch
from torch import nn

from pages.look_inside.attention.maps import modules_of
from tests.looking.test_written_elsewhere import Recurrent
from tests.pages.looking import figure_of, grid, header_of, opened, part_of, said
from tfm_core import look
from tfm_core.looking.opening import open_look

WIDTH, HEADS = 12, 2


def encoder(length=5):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    tokens = list("abcde") if length == 5 else ()
    return look(model, torch.randn(2, length, WIDTH), tokens=tokens)


def test_a_look_opens_with_its_heads_and_answers_all_that_needs_no_model(store):
    run = open_look(encoder(), store)
    at = opened(run)
    assert not at.error
    assert grid(at)
    questions = next(one for one in at.button_group if one.key == "attention-deeper")
    assert "Arithmetic" in questions.options
    assert "Rollout" in questions.options
    assert "How this map is computed" not in said(at)
    for question in ("heads", "rollout", "compare", "take"):
        at = opened(run, deeper=question)
        assert not at.error, question


def test_a_cell_shows_its_arithmetic(store):
    seen = encoder()
    run = open_look(seen, store)
    at = opened(run, view="arithmetic", cell="2,3", layer=1, head=1)
    assert not at.error
    weight = next(iter(seen.maps.values())).weights[0, 0, 1, 2]
    formulas = [one.value for one in at.latex if "\\frac" in one.value]
    assert any(f"= {float(weight):.4f}" in one for one in formulas)


def test_a_stretch_of_a_long_text_is_shown_with_its_places(store):
    seen = encoder(60)
    run = open_look(seen, store)
    link = {"tokens": "21-50", "layer": "1", "head": "2", "view": "arithmetic", "cell": "23,25"}
    at = opened(run, pin="k25", **link)
    header, values = grid(at)
    assert header["key"] == [str(n) for n in range(21, 51)]
    assert header["first"] == 20
    weights = next(iter(seen.maps.values())).weights[0, 1]
    assert torch.allclose(torch.tensor(values[0, 1]).float(), weights[20:50, 20:50], atol=1e-3)
    lines = header_of(part_of(at, "head_lines").bytes)
    assert (len(lines["query"]), lines["pin"]) == (30, ["k", 4])
    figure = figure_of(at, "attention-map")
    assert figure.data[0].z.shape == (30, 30)
    assert "key 25: 25" in figure.data[0].hovertext[2][4]
    assert "M 3.56,1.56" in figure.layout.shapes[-1].path  # the cell 23,25
    at.slider(key="attention-stretch").set_value((1, 60)).run()
    assert "tokens" not in at.query_params
    assert len(grid(at)[0]["key"]) == 60
    at.slider(key="attention-stretch").set_value((2, 9)).run()
    assert at.query_params["tokens"] == "2-9"
    for deeper in ("rollout", "compare", "take"):
        assert not opened(run, deeper=deeper, **link).error, deeper
    assert "two positions" in opened(run, tokens="9-2").warning[0].value


def test_a_look_of_maps_alone_offers_no_other_kind_and_says_that_it_has_no_queries(store):
    seen = look(Recurrent(), torch.randn(3, 7, WIDTH), torch.randn(3, 5, WIDTH))
    run = open_look(seen, store)
    assert list(modules_of(run)) == ["cross"]
    at = opened(run, deeper="heads")
    assert not at.error
    at = opened(run, view="arithmetic", cell="1,1")
    assert "No queries, keys and values were recorded" in " ".join(one.value for one in at.error)

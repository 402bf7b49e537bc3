"""A look on the attention page: its maps and their arithmetic, and nothing that needs the model."""

import torch
from torch import nn

from pages.attention.controls import offer_of
from tests.looking.test_written_elsewhere import Recurrent
from tests.pages.looking import grid, opened, said
from tfm_core import look
from tfm_core.looking.opening import open_look

WIDTH, HEADS = 12, 2


def encoder(length=5):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return look(model, torch.randn(2, length, WIDTH), tokens=list("abcde"))


def test_a_look_opens_with_its_heads_and_offers_nothing_that_needs_a_model(store):
    run = open_look(encoder(), store)
    at = opened(run)
    assert not at.exception
    assert not at.error
    assert grid(at)
    questions = next(one for one in at.button_group if one.key == "attention-deeper")
    assert "Arithmetic" in questions.options
    assert "Rollout" in questions.options
    assert "How this map is computed" not in said(at)


def test_each_question_is_answered_or_explained(store):
    run = open_look(encoder(), store)
    for question in ("heads", "rollout", "compare", "take"):
        at = opened(run, deeper=question)
        assert not at.exception, question
        assert not at.error, question


def test_a_cell_shows_its_arithmetic(store):
    seen = encoder()
    run = open_look(seen, store)
    at = opened(run, view="arithmetic", cell="2,3", layer=1, head=1)
    assert not at.exception
    assert not at.error
    weight = next(iter(seen.maps.values())).weights[0, 0, 1, 2]
    formulas = [one.value for one in at.latex if "\\frac" in one.value]
    assert any(f"= {float(weight):.4f}" in one for one in formulas)


def test_a_map_without_queries_says_so(store):
    seen = look(Recurrent(), torch.randn(3, 7, WIDTH), torch.randn(3, 5, WIDTH))
    at = opened(open_look(seen, store), view="arithmetic", cell="1,1")
    assert not at.exception
    assert "no queries" in " ".join(one.value for one in at.error)


def test_kinds_that_were_not_seen_are_not_offered(store):
    seen = look(Recurrent(), torch.randn(3, 7, WIDTH), torch.randn(3, 5, WIDTH))
    run = open_look(seen, store)
    assert list(offer_of(run, run.probe()).kinds) == ["cross"]
    at = opened(run, deeper="heads")
    assert not at.exception
    assert not at.error

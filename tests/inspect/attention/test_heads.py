"""Statistics of heads that were constructed, so that every figure is known."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.inspect.constructed import (
    constructed_snapshot,
    items_of_text,
    text_experiment,
    vit_experiment,
)
from tests.probe.expected_masks import expected_masks
from tfm_core.inspect.attention import heads
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.heads import (
    ROLES,
    Tally,
    describe,
    is_punctuation,
    relations_by_position,
    relations_of,
    rows_of_example,
    table_of_snapshot,
)
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.probe.masks import on_examples
from tfm_core.probe.types import Probe

P, T = 2, 7
FAMILIES = ("encoder-decoder", "encoder-only", "decoder-only", "recurrent")


def head(cells):
    """Return the weights (P, H, Q, K) of one head whose rows are ``cells`` (T, T), normalised."""
    rows = cells / cells.sum(-1, keepdims=True)
    return np.broadcast_to(rows, (P, 1, T, T)).astype(np.float32)


def allowed(cells=None):
    cells = np.ones((T, T), bool) if cells is None else cells
    return np.broadcast_to(cells, (P, T, T))


def statistics(weights, may_attend, relations=None, kind=""):
    tally = Tally()
    tally.add(weights, relations_by_position(may_attend) if relations is None else relations)
    return pd.DataFrame(tally.rows()).assign(kind=kind)


def of_module(table, module):
    return table[table["module"] == module].reset_index(drop=True)


def previous_token_head():
    cells = np.eye(T, k=-1)
    cells[0, 0] = 1  # nothing stands before the first token
    return head(cells)


def test_one_example_has_its_figures_and_sinks_and_even_heads_their_shares():
    even = np.full((P, 2, T, T), 1 / (T + 1), np.float32)  # with the sink, all alike
    even[:, 1] = 0.1 / T
    stats = statistics(even, allowed())
    np.testing.assert_allclose(stats["sink"], [1 / (T + 1), 0.9], atol=1e-6)
    assert stats["even sink"][0] == pytest.approx(1 / (T + 1))
    assert stats.entropy[0] == pytest.approx(math.log(T + 1), abs=1e-5)
    assert stats.evenness[0] == pytest.approx(1, abs=1e-5)
    assert describe(stats.iloc[1]) == "no token, 90%"
    assert "sink" not in statistics(previous_token_head(), allowed())
    stats = statistics(head(np.ones((T, T))), allowed())
    assert stats.entropy[0] == pytest.approx(math.log(T), rel=1e-5)
    assert stats.evenness[0] == pytest.approx(1, rel=1e-5)
    for role in (name for name in ROLES if name in stats):
        share = stats[role]
        assert share[0] == pytest.approx(stats[f"even {role}"][0], rel=1e-5), role
        if role != "near":
            assert share[0] == pytest.approx(1 / T, rel=1e-5), role
    positions = np.arange(T)
    assert stats.distance[0] == pytest.approx(
        np.abs(positions[:, None] - positions).mean(), rel=1e-5
    )
    assert describe(stats.iloc[0]) == "spreads its attention evenly (100% of the maximum entropy)"
    assert describe(stats.iloc[0], is_short=True) == "spreads evenly"
    experiment, items = text_experiment(), items_of_text()
    snapshot = constructed_snapshot(experiment, items, 2)
    probe, alone = Probe("text", items), Probe("text", items[1:2])
    module = "encoder.layers.1.self_attention"
    found = of_module(
        pd.DataFrame(rows_of_example(experiment, example_of(experiment, probe, snapshot, 1))),
        module,
    )
    cut = {name: maps[1:2] for name, maps in snapshot.attention.items()}
    masks = {name: mask[1:2] for name, mask in snapshot.masks.items()}
    expected = table_of_snapshot(experiment, alone, replace(snapshot, attention=cut, masks=masks))
    entropy = of_module(expected, module)["entropy"]
    np.testing.assert_allclose(found["entropy"], entropy, rtol=1e-3)


def test_heads_that_look_back_stay_near_or_align_are_called_so(monkeypatch):
    stats = statistics(previous_token_head(), allowed())
    assert stats["previous"][0] == pytest.approx(1)
    assert stats["next"][0] == 0
    assert describe(stats.iloc[0]) == "previous token, 100%"
    assert stats.entropy[0] == pytest.approx(0, abs=1e-6)
    assert stats.distance[0] == pytest.approx((T - 1) / T)  # all but the first look one back
    stats = statistics(previous_token_head(), allowed(np.tril(np.ones((T, T), bool))))
    assert stats["previous"][0] == pytest.approx(1)
    assert stats["n_queries"][0] == P * (T - 1)  # the first token has no choice
    n = 13
    away = np.arange(n)[None] - np.arange(n)[:, None]
    cells = (np.abs(away) <= 2) + 1e-9
    weights = np.broadcast_to(cells / cells.sum(-1, keepdims=True), (P, 1, n, n))
    stats = statistics(weights.astype(np.float32), np.ones((P, n, n), bool))
    assert describe(stats.iloc[0]) == "nearby tokens, 100%"
    experiment, items = text_experiment(), items_of_text()
    snapshot = constructed_snapshot(experiment, items, 0)
    module = "decoder.layers.0.cross_attention"
    scores = pd.DataFrame(
        {"module": module, "head": [1, 2, 3], "share": [0.94, 0.2, 0.7], "aer": [0.02, 0.9, 0.3]}
    ).assign(chance=0.3)
    rows = scores.to_dict("records")
    tally = SimpleNamespace(n_tokens=1, add_maps=lambda *_maps: None, rows=lambda: rows)
    monkeypatch.setattr(heads, "AlignmentTally", lambda: tally)
    found = of_module(table_of_snapshot(experiment, Probe("text", items), snapshot), module)
    labels = found["label"].tolist()
    assert labels[0] == "true source words, 94%"
    assert "true source" not in labels[1]
    assert labels[2] == "mostly true source words, 70%"
    assert describe({**found.iloc[0], "kind": "picture"}) == "the named digit, 94%"
    assert found["aer"].tolist() == [0.02, 0.9, 0.3]


@pytest.mark.parametrize(
    ("cells", "words", "role"),
    [
        (np.eye(T), "itself, 100%", "self"),
        (np.tile(np.eye(T)[0], (T, 1)), "first token, 100%", "first"),
        (0.5 * np.tile(np.eye(T)[0], (T, 1)) + 0.5 / T, "mostly first token, 57%", "first"),
    ],
)
def test_simple_heads_are_named(cells, words, role):
    stats = statistics(head(cells), allowed())
    assert describe(stats.iloc[0]) == words
    assert max((name for name in ROLES if name in stats), key=lambda name: stats[name][0]) == role


@pytest.mark.parametrize(
    ("tokens", "role", "words"),
    [
        ("abcadab", "induction", "induction, 100%"),
        ("abcadab", "repeated", "same token before, 100%"),
        ("abcdefghijklmna", "induction", None),  # one query in 15 has such a key
    ],
)
def test_heads_that_look_for_a_token_are_named_where_enough_tokens_come_again(tokens, role, words):
    experiment = text_experiment("decoder-only")
    items = [{"src": [], "tgt": list(tokens)}]
    may_attend = np.tril(np.ones((1, len(tokens) + 1, len(tokens) + 1), bool))
    relations = relations_of(experiment, items, "sequence", may_attend)
    cells = relations.roles[role]
    even = may_attend / may_attend.sum(-1, keepdims=True)
    n = cells.sum(-1, keepdims=True)
    weights = np.where(n, cells / np.maximum(n, 1), even)[:, None].astype(np.float32)
    stats = statistics(weights, may_attend, relations, "sequence")
    if words is None:
        assert role not in stats
    else:
        assert describe(stats.iloc[0]) == words


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_gets_nothing_and_a_leak_would_show(family):
    experiment, items = text_experiment(family), items_of_text()
    snapshot = constructed_snapshot(experiment, items, 0)
    found = table_of_snapshot(experiment, Probe("text", items), snapshot)
    assert np.all(found["padding"] == 0)
    kind, modules = next(iter(modules_by_kind(experiment).items()))
    weights = snapshot.attention[modules[0]].copy()
    weights[0, :, 0, -1] = 0.5  # the first example is shorter than the second
    may_attend = expected_masks(experiment, items, modules[0])
    relations = relations_of(experiment, items, kind, may_attend)
    assert np.all(statistics(weights, relations.may_attend, relations)["padding"] > 0)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_distances_between_patches_are_in_pixels(pooling):
    experiment = vit_experiment(pooling)
    module = modules_by_kind(experiment)["patches"][0]
    size = axes(experiment, {}, module).shape
    relations = relations_of(experiment, [{}, {}], "patches", np.ones((2, *size), bool))
    first = int(pooling == "cls")
    weights = np.zeros((2, 1, *size), np.float32)
    for query in range(size[0]):  # every patch looks at the patch above, those on top at the right
        row, column = divmod(query - first, 4)
        key = query - 4 if row else query + (1 if column < 3 else -1)
        weights[:, 0, query, key if query >= first else 0] = 1
    stats = statistics(weights, relations.may_attend, relations, "patches")
    assert stats["unit"][0] == "pixels"
    assert stats.distance[0] == pytest.approx(7)  # patches of 7 pixels
    assert stats["above"][0] == pytest.approx(1)
    assert describe(stats.iloc[0]) == "patch above, 100%"
    assert ("cls" in stats) == (pooling == "cls")


def test_diagonals_are_further_and_punctuation_is_signs_alone():
    experiment = vit_experiment()
    relations = relations_of(experiment, [{}], "patches", np.ones((1, 16, 16), bool))
    assert relations.distance[0, 0, 1] == pytest.approx(7)
    assert relations.distance[0, 0, 5] == pytest.approx(7 * math.sqrt(2))
    for token, is_sign in [
        (".", True),
        ("-", True),
        ("+", True),
        ("?!", True),
        ("a", False),
        ("학교", False),
        ("<bos>", False),
        ("it's", False),
        ("", False),
    ]:
        assert is_punctuation(token) is is_sign
    with pytest.raises(ValueError, match="may_attend"):
        statistics(np.zeros((1, 2, 3, 4)), np.ones((1, 4, 3), bool))
    name = "encoder.layers.0.self_attention"
    masks = {name: np.ones((1, 1, 4, 4), bool)}
    with pytest.raises(ValueError, match="needs a 5 × 5 map"):
        on_examples(text_experiment(), items_of_text(), name, masks, (4, 4))
    with pytest.raises(ValueError, match="no examples"):
        Tally().rows()

"""What goes to the browser for a stage: bounded, and exact where there is room."""

import numpy as np

from pages.app.model import stage_view
from pages.components import stage as component
from pages.components.buttons import new_presses
from pages.components.component import pooled
from tests.pages.learned_runs import learned_run
from tests.pages.looking import film
from tfm_core.inspect import stage


def test_header_and_weights_come_out_as_they_went_in(store):
    shown = stage.read_stage(learned_run(store, "reverse"))
    header, weights = film(component.pack(shown, "one"))
    np.testing.assert_array_equal(weights, shown.weights)
    assert header["block"] == 1
    assert [frame["step"] for frame in header["frames"]] == list(shown.steps)
    assert header["frames"][1]["answers"][2]["tokens"] == list(
        shown.frames[1]["answers"][2]["tokens"]
    )
    assert len(header["examples"]) == len(shown.examples)
    assert header["query"] == list(shown.maps.query)
    assert header["attention"] == shown.kinds.index("cross")


def frames(n: int) -> list[dict[str, object]]:
    return [{"step": step, "answers": (), "labels": ()} for step in range(n)]


def test_large_maps_are_pooled_and_then_snapshots_left_out():
    weights = np.random.default_rng(7).random((5, 2, 3, 149, 151)).astype(np.float16)
    kept, drawn, block = component.bounded(frames(5), weights)
    assert len(kept) == 5
    assert block > 1
    assert drawn.size <= component.MAX_VALUES * 1.1
    assert drawn[0, 1, 2, 0, 0] == weights[0, 1, 2, :block, :block].max()
    weights = np.zeros((1, 3, 40, 20), np.float16)
    assert pooled(weights, 1)[0].shape == (1, 3, 1, 1)
    assert pooled(weights, 1, least_side=13)[0].shape == (1, 3, 14, 7)
    weights = np.zeros((401, 2, 7, 17, 17), np.float16)
    kept, drawn, block = component.bounded(frames(401), weights)
    assert block == 1
    assert drawn.size <= component.MAX_VALUES
    assert len(kept) == len(drawn) < 401
    assert (kept[0]["step"], kept[-1]["step"]) == (0, 400)
    assert new_presses(["a", 5], None) == 5
    assert new_presses(["a", 5], ["a", 2]) == 3
    assert new_presses(["a", 5], ["a", 5]) == 0
    assert new_presses(["b", 1], ["a", 5]) == 1
    for forged in (None, [], ["a"], [3, 4], ["a", True], ["a", "5"], ["a", -2]):
        assert new_presses(forged, None) == 0
    assert new_presses(["a", 10**9], None) == 50


def test_a_stage_hears_how_a_run_ended_and_why_but_nothing_before(store):
    for state, reason in (("finished", None), ("failed", "The disk is full."), ("queued", None)):
        run = learned_run(store, state=state, step=211, reason=reason)
        moving = stage_view.moving(run, tuple(run.snapshot_steps()), name="")
        assert ("211" in moving["ended"]) == (not moving["live"])
        assert (reason or "") in moving["ended"]
        assert moving["live"] == (state == "queued")

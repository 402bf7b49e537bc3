"""Alignment: scores against known answers, and the cross-attention of an RNN beside others."""

import numpy as np
import pandas as pd
import pytest

from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tests.probe.expected_masks import expected_masks
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.alignment import (
    LEARNED,
    AlignmentTally,
    aligned,
    best_head,
    can_be_scored,
    formed_at,
    score,
    score_maps,
    score_over_training,
    scored_modules,
    true_cells,
    truth_on_map,
)
from tfm_core.probe.types import Probe, Snapshot
from tfm_core.runs.snapshots import write_probe, write_snapshot
from tfm_core.runs.store import RunStore
from tfm_core.studies.experiments import race_of_attention

FAMILIES = ("encoder-decoder", "encoder-only", "decoder-only", "recurrent")
ITEMS = [
    {"src": list("abcde"), "tgt": list("edc"), "alignment": [[4], [3], [2]]},
    {"src": list("ab"), "tgt": list("b-ab"), "alignment": [[1], [], [0], [0, 1]]},
]


def snapshot_of(experiment, step, looks):
    """Return a snapshot in which head h of every scored module looks where ``looks[h]`` says.

    ``looks[h](truth)``: bool (T, S) -> weights (T, S).
    """
    attention, kept = {}, {}
    for module in scored_modules(experiment):
        kept[module] = expected_masks(experiment, ITEMS, module)[:, None]
        maps = np.zeros((len(ITEMS), len(looks), *kept[module].shape[2:]), np.float16)
        for index, item in enumerate(ITEMS):
            truth = truth_on_map(experiment, item, module)
            source = np.zeros(truth.shape, bool)
            source[:, : len(item["src"])] = True
            for head, look in enumerate(looks):
                maps[index, head, : truth.shape[0], : truth.shape[1]] = look(truth, source)
        attention[module] = maps
    return Snapshot(step, attention, masks=kept)


def perfect(truth, source):
    return truth / np.maximum(truth.sum(-1, keepdims=True), 1)


def never(truth, source):
    wrong = source & ~truth
    weights = wrong / np.maximum(wrong.sum(-1, keepdims=True), 1)
    return np.where(wrong.any(-1, keepdims=True), weights, 0)


def even(truth, source):
    return source / source.sum(-1, keepdims=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_perfect_aligner_scores_one_and_makes_no_error(family):
    experiment = text_experiment(family)
    found = score(experiment, Probe("text", ITEMS), snapshot_of(experiment, 0, [perfect, never]))
    assert set(found["module"]) == set(scored_modules(experiment))
    first, second = (found[found["head"] == head] for head in (1, 2))
    assert first["share"].to_numpy() == pytest.approx(1)
    assert first["aer"].to_numpy() == pytest.approx(0)
    assert (first["n_tokens"] == 6).all()  # the token without a source is not counted
    assert second["share"].to_numpy() == pytest.approx(0)


@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_attention_that_is_even_over_all_a_row_may_attend_to_has_the_share_of_chance(
    family, window
):
    """In one sequence that is also <bos> and what was written; a window narrows it."""
    if family == "recurrent" and window:
        return
    experiment = text_experiment(family)
    if window:
        experiment = experiment.replace(model=experiment.model.model_dump() | {"window": window})
    for module in scored_modules(experiment):
        may = expected_masks(experiment, ITEMS, module)
        weights = (may / np.maximum(may.sum(-1, keepdims=True), 1))[:, None]
        (found,) = score_maps(experiment, module, ITEMS, weights, may)
        assert found["share"] == pytest.approx(found["chance"])
        if family == "decoder-only" and not window:
            assert found["chance"] < (3 / 5 + 1 / 2 + 1 / 2 + 1) / 6  # of the source alone


def test_errors_are_those_of_och_and_ney_and_no_truth_has_no_score():
    # three tokens; the head links 0 -> 0 (sure, right), 1 -> 0 (wrong), 2 -> 1 (possible)
    truth = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 1]], bool)
    weights = np.array([[[0.8, 0.1, 0.1], [0.6, 0.2, 0.2], [0.1, 0.5, 0.4]]], np.float32)
    tally = AlignmentTally()
    tally.add(weights, truth)
    links, sure, sure_hits, hits = 3, 2, 1, 2
    expected = 1 - (sure_hits + hits) / (links + sure)
    (row,) = tally.rows()
    assert row["aer"] == pytest.approx(expected)
    assert row["share"] == pytest.approx((0.8 + 0.2 + 0.9) / 3)
    experiment = text_experiment()
    cells = truth_on_map(experiment, ITEMS[0], "decoder.layers.0.cross_attention")
    assert cells.shape == (4, 5)
    assert np.array_equal(np.argwhere(cells), [[0, 4], [1, 3], [2, 2]])
    assert not cells[3].any()  # this row writes <eos>
    experiment = text_experiment("decoder-only")
    cells = truth_on_map(experiment, ITEMS[0], "decoder.layers.0.self_attention")
    assert np.array_equal(np.argwhere(cells), [[5, 4], [6, 3], [7, 2]])
    unknown = [{"src": ["a"], "tgt": ["b"]}]
    assert not can_be_scored(vit_experiment(), Probe("image", [{"label": 3}]))
    assert not can_be_scored(text_experiment(), Probe("text", unknown))
    assert can_be_scored(text_experiment(), Probe("text", ITEMS))
    with pytest.raises(ValueError, match="alignment of this example is unknown"):
        true_cells(unknown[0])
    with pytest.raises(ValueError, match="has a known source"):
        AlignmentTally().rows()
    with pytest.raises(
        ValueError, match=r"weights are \(1, 2, 3\), but the true alignment is \(3, 2\)"
    ):
        AlignmentTally().add(np.zeros((1, 2, 3)), np.zeros((3, 2), bool))
    both = aligned(frame_of((0.1, 0.6, 0.7), (0.1, 0.2, 0.62)), 9)
    assert both["share"].tolist() == [0.7, 0.62]
    assert both["since"].tolist() == [5, 9]
    one = aligned(frame_of((0.1, 0.6, 0.7), (0.1, 0.2, 0.3)), 9)
    assert (one["head"].tolist(), one["since"].tolist()) == ([1], [5])
    assert aligned(frame_of((0.1, 0.6, 0.4), (0.1, 0.2, 0.3)), 9).empty


def run_with(tmp_path, looks_by_step):
    (n_heads,) = {len(looks) for looks in looks_by_step.values()}
    experiment = text_experiment(n_heads=n_heads)
    run = RunStore(tmp_path, recorded=None).create(experiment, state="finished")
    read = [
        {**item, "src_text": " ".join(item["src"]), "tgt_text": " ".join(item["tgt"])}
        for item in ITEMS
    ]
    write_probe(run.folder, {"kind": "text", "items": read})
    for step, looks in looks_by_step.items():
        write_snapshot(run.folder, snapshot_of(experiment, step, looks))
    return run


def test_the_head_that_learned_to_align_is_named_and_when_unless_it_forgot(tmp_path):
    run = run_with(tmp_path, {0: [even, never], 3: [even, perfect], 11: [even, perfect]})
    frame = score_over_training(run)
    assert sorted(frame["step"].unique()) == [0, 3, 11]
    assert len(frame) == 3 * 3 * 2  # steps, layers, heads
    best = best_head(frame[frame["step"] == 11].to_dict("records"))
    assert (best["head"], best["share"], best["aer"]) == (2, pytest.approx(1), 0)
    assert formed_at(frame, best["module"], 2) == 3
    assert formed_at(frame, best["module"], 1) is None
    assert best_head(frame[frame["step"] == 0].to_dict("records"))["share"] < LEARNED
    assert best_head(frame[frame["step"] == 7].to_dict("records")) is None
    run = run_with(tmp_path / "forgot", {0: [perfect], 3: [never], 11: [perfect]})
    assert formed_at(score_over_training(run), scored_modules(run.experiment)[0], 1) == 11


def frame_of(*shares):
    """Return the scores of heads at steps 0, 5 and 9: ``shares[head][step]``."""
    return pd.DataFrame(
        [
            {"step": step, "module": "m", "head": head, "share": share}
            for head, over in enumerate(shares, 1)
            for step, share in zip((0, 5, 9), over, strict=True)
        ]
    )


@pytest.mark.parametrize("name", alignment.rnn_models())
def test_maps_are_cut_to_their_sentences_and_the_best_head_is_scored(store, name):
    run = constructed_run(store, race_of_attention("numbers").experiments[name])
    found = alignment.cross_attention_at(run)
    assert found.step == 11
    assert not found.is_scored  # the constructed examples have no true sources
    for weights, names, truth in zip(found.weights, found.names, found.truth, strict=True):
        assert weights.shape == (run.experiment.model.n_heads, *names.shape)
        assert truth.shape == names.shape
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-2)
    assert len(alignment.probe_sentences(run)) == len(found.weights) == 3


@pytest.mark.wide
def test_a_trained_contest_is_scored_against_the_truth(store):
    """Trains the small RNN for real: its attention comes to lie on the true words."""
    from tfm_core.probe.snapshot import probe_of, take
    from tfm_core.runs.snapshots import write_probe, write_snapshot
    from tfm_core.training.loop import build, train

    experiment = race_of_attention("reverse", steps=250).experiments["additive"]
    experiment = experiment.replace(
        task={
            **experiment.task.model_dump(),
            "size": 5,
            "n_train": 2000,
            "n_validation": 20,
            "n_test": 20,
        }
    )
    trainer = build(experiment)
    run = store.create(experiment, name="Trained")
    write_probe(run.folder, probe_of(trainer))
    write_snapshot(run.folder, take(trainer))
    untrained = alignment.cross_attention_at(run)
    for _event in train(trainer):
        pass
    write_snapshot(run.folder, take(trainer))
    trained = alignment.cross_attention_at(run)
    assert trained.step == 250
    assert untrained.share == pytest.approx(untrained.even, abs=0.05)
    assert trained.share > untrained.share + 0.15
    assert trained.aer < min(0.4, untrained.aer)


def test_the_three_models_are_as_wide_and_the_feed_forward_layers_twice_as_wide():
    one, many = (alignment.rnn_models()[name] for name in ("one-head", "many-heads"))
    assert (one.n_heads, one.d_model, one.d_ff) == (1, 64, 128)
    assert (many.n_heads, many.d_model, many.d_ff) == (4, 64, 128)
    assert alignment.rnn_models()["additive"].d_model == 64

"""What the positions page measures: the properties that the papers promise."""

import math

import numpy as np
import pytest

from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.positions import POSITIONS, POSITIONS_OF_WORDS
from tfm_core.inspect import position_tables, positions_at_work
from tfm_core.inspect.position_tables import by_offset, rotary_scores
from tfm_core.runs.store import RunStore
from tfm_core.studies.experiments import race_of_positions
from tfm_core.training.checkpoints import save
from tfm_core.training.loop import build


@pytest.mark.parametrize("base", [10.0, 10000.0])
def test_wavelengths_run_from_two_pi_towards_the_base_times_two_pi(base):
    found = position_tables.wavelengths(22, base)["wavelength"].to_numpy()
    assert found[0] == pytest.approx(2 * math.pi)
    assert found[-1] == pytest.approx(2 * math.pi * base ** (20 / 22))
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("seed", [None, 0, 7])
@pytest.mark.parametrize("base", [10.0, 10000.0])
def test_rotary_scores_depend_on_the_offset_only(seed, base):
    offsets, means, spread = by_offset(rotary_scores(23, 14, base, seed=seed))
    assert spread < 1e-5
    assert offsets[0] == -22
    assert len(means) == 45


def test_alibi_falls_with_distance_and_positions_notice_a_shuffle():
    bias, weights = position_tables.added_by_distance(POSITIONS["alibi"], 5, 13)
    assert bias.shape == weights.shape == (5, 13)
    assert (np.diff(weights, axis=1) < 0).all()
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
    like = position_tables.cosines(position_tables.patch_table(7, 44))
    assert like[24, 25] == pytest.approx(like[24, 31], abs=1e-5)
    flat = position_tables.cosines(position_tables.patch_table(7, 44, is_2d=False))
    assert flat[24, 25] > flat[24, 31] + 0.01
    like = np.zeros((9, 9), np.float32)
    for place in range(9):
        if place % 3 < 2:
            like[place, place + 1] = like[place + 1, place] = 0.5
    near = position_tables.nearness(like, 3)
    assert near == (0.5, 0.0, 0.0)
    assert "but not those in a column" in position_tables.nearness_text(*near)
    assert "hardly more similar" in position_tables.nearness_text(
        *position_tables.nearness(np.eye(5))
    )
    words = ["the", "cat", "sat", "on", "the", "mat"]
    found = positions_at_work.untrained_changes(words, positions_at_work.shuffled_order(6))
    assert set(found) == {*POSITIONS_OF_WORDS, positions_at_work.CAUSAL}
    assert found.pop("none") < 1e-5
    assert min(found.values()) > 1e-3
    run = RunStore().get("recorded-korean")
    noticed, (before, after), moved = positions_at_work.shuffle_words(
        run, "the teacher bought a big egg"
    )
    assert noticed.min() > 0.01
    assert before == "선생님은 큰 달걀을 샀다."
    assert after != before
    assert sorted(moved) == sorted(["the", "teacher", "bought", "a", "big", "egg"])
    run = RunStore().get("recorded-digits")
    picture = run.probe().images[3]
    moved, before, after = positions_at_work.shuffle_patches(run, picture)
    assert moved.shape == picture.shape
    assert sorted(moved.ravel()) == sorted(picture.ravel())
    row, column = divmod(positions_at_work.shuffled_order(49)[1], 7)
    patch = picture[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
    np.testing.assert_array_equal(moved[0, :4, 4:8], patch)
    assert abs(before - after).max() > 0.01


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_a_shuffle_is_a_new_order_of_all_places(n):
    order = positions_at_work.shuffled_order(n)
    assert sorted(order) == list(range(n))
    assert n < 2 or order != list(range(n))


@pytest.mark.parametrize(
    ("run_id", "text", "sentence"),
    [
        ("recorded-korean", "the xylophone", "is not a word of this task"),
        ("recorded-digits", "the teacher", "reads pictures"),
    ],
)
def test_what_a_run_cannot_read_is_said(run_id, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        positions_at_work.shuffle_words(RunStore().get(run_id), text)


def small_race(tmp_path, position="sinusoidal", task="copy"):
    """A run of a tiny model with its untrained weights saved as a checkpoint."""
    experiment = PRESETS["copy"].experiment.replace(
        model={**PRESETS["copy"].experiment.model.model_dump(), "d_model": 16, "d_ff": 16},
        task={
            "kind": "text",
            "name": task,
            "size": 5 if task == "copy" else 2,
            "n_train": 37,
            "n_validation": 8,
            "n_test": 8,
        },
    )
    racers = race_of_positions(experiment, steps=3).experiments
    store = RunStore(tmp_path, recorded=None)
    run = store.create(racers[position], state="finished")
    save(build(racers[position]), run.folder / "checkpoints" / "last")
    return store, racers, run


@pytest.mark.parametrize("position", POSITIONS_OF_WORDS)
def test_every_kind_answers_up_to_twice_the_trained_length(tmp_path, position):
    _, _, run = small_race(tmp_path, position)
    table, trained, _why = positions_at_work.extrapolate(run)
    assert trained == 5
    assert table["length"].iloc[-1] == 10
    assert table["tokens"].between(0, 1).all()


def test_a_learned_table_that_ends_says_so(tmp_path):
    store, racers, _ = small_race(tmp_path)
    short = racers["learned"]
    short = short.replace(model=short.model.replace(max_len=6).model_dump())
    run = store.create(short, state="finished")
    save(build(short), run.folder / "checkpoints" / "last")
    table, _trained, why = positions_at_work.extrapolate(run)
    assert "learned position table has 6 rows" in why
    assert np.isnan(table["tokens"].iloc[-1])
    assert not np.isnan(table["tokens"].iloc[0])


@pytest.mark.parametrize(("preset", "words"), [("vit-digits", "pictures"), ("translate", "copy")])
def test_where_there_is_no_longer_sequence_it_is_said(preset, words):
    assert words in positions_at_work.can_extrapolate(PRESETS[preset].experiment)

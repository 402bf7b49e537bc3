"""A half-trained step is one at which the model got about half of its answers right."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tests.inspect.constructed import small, text_experiment  # noqa: E402
from tfm_core.inspect.attention.trained import model_of  # noqa: E402
from tfm_core.inspect.errors.answers import answers, steps_of  # noqa: E402
from tfm_core.inspect.progress.weights import half_trained_step, model_of_step  # noqa: E402
from tfm_core.runs.run import Run  # noqa: E402
from tfm_core.runs.store import RECORDED  # noqa: E402
from tfm_core.sentences import StudentError  # noqa: E402


def recorded(name):
    return Run(RECORDED / name)


def events(folder, run, rows):
    """Write a run's events: its start, and validations of (step, accuracy, whole answers)."""
    made = Run(folder)
    folder.mkdir()
    for part in run.folder.iterdir():
        if part.name != "events.jsonl":
            (folder / part.name).symlink_to(part)
    started = {"event": "started", "step": 0, "chance": 0.1}
    validated = [
        {"event": "measured", "split": "validation", "step": step, "loss": 1.0,
         "accuracy": a, "sequence_accuracy": s}
        for step, a, s in rows
    ]  # fmt: skip
    lines = [json.dumps(one) for one in (started, *validated)]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return made


def test_half_trained_is_where_the_run_measures_so_by_answers_or_pictures():
    run = recorded("recorded-korean")
    step = half_trained_step(run.curves(), steps_of(run))
    written = answers(run, step, limit=100).written
    assert written is not None
    assert 0.2 < np.mean([one.is_right for one in written]) < 0.8
    run = recorded("recorded-digits")
    step = half_trained_step(run.curves(), steps_of(run))
    assert 0.3 < answers(run, step, limit=200).is_right.mean() < 0.8


@pytest.mark.parametrize(
    "name", ["recorded-grammar", "recorded-captions"], ids=["one step saved", "captioner"]
)
def test_without_other_weights_the_last_step_stands_in(name):
    run = recorded(name)
    steps = steps_of(run)
    assert half_trained_step(run.curves(), steps) == steps[-1]


def test_between_validations_the_score_is_interpolated_of_answers_or_tokens(tmp_path):
    run = recorded("recorded-korean")
    rows = [(0, 0.1, 0.0), (100, 0.9, 0.8)]  # half of 0.8 is reached at step 50
    made = events(tmp_path / "made", run, rows)
    assert half_trained_step(made.curves(), (0, 41, 53, 71, 100)) == 53
    rows = [(0, 0.1, 0.0), (100, 0.9, 0.0)]  # half way from chance, 0.1, is 0.5, at step 50
    made = events(tmp_path / "tokens", run, rows)
    assert half_trained_step(made.curves(), (0, 29, 47, 83, 100)) == 47
    made = events(tmp_path / "guess", run, [(0, 0.1, 0.0), (100, 0.1, 0.0)])
    assert half_trained_step(made.curves(), (0, 47, 100)) == 100
    made = events(tmp_path / "none", run, [])
    assert half_trained_step(made.curves(), (0, 47, 100)) == 100


def test_the_model_of_a_step_has_its_weights_and_none_means_the_last(tmp_path):
    run, _trainer = trained(tmp_path, small(text_experiment("encoder-decoder")))
    last, step = model_of(run)
    assert model_of_step(run) == (last, step)
    assert model_of_step(run, step) == (last, step)
    korean = recorded("recorded-korean")
    early, at = model_of_step(korean, 63)
    assert at == 63
    for name, value in korean.weights(63).items():
        assert np.array_equal(early.state_dict()[name].numpy(), value), name
    with pytest.raises(StudentError, match="64"):
        model_of_step(korean, 64)

"""The picture of a model at work: its numbers are those of the model's forward pass."""

import numpy as np
import pytest
import torch

from tfm_core.anatomy import Attention
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.knockouts.engine import knocked_out
from tfm_core.inspect.knockouts.parts import first_to_go
from tfm_core.trace.picture import picture, stages
from tfm_core.trace.subject import book_example, subject
from tfm_core.training.setup import new_model

SEEN = (
    "translate",
    "vit-digits",
    "captions",
    "translate-luong",
    "addition",
    "sentiment",
    "masked-words",
    "span-corruption",
    "gpt-grammar",
)


@pytest.fixture(params=SEEN, scope="module")
def seen(request):
    return subject(PRESETS[request.param].experiment)


def test_attention_sums_and_answers_are_in_the_picture(seen) -> None:
    shown = picture(seen, 1)
    maps = {stage.path: stage for _lane, _place, stage in stages(shown) if stage.kind == "heads"}
    attentions = {part.path for part in seen.anatomy.all if isinstance(part, Attention)}
    assert set(maps) == attentions
    for path, stage in maps.items():
        weights = seen.cache[f"{path}.weights"][1]
        assert stage.shape == (stage.values.shape)
        assert len(weights) == stage.shape[0]
        sums = np.nansum(stage.values, -1)
        assert np.all(sums < 1 + 1e-5)
        if path.endswith("self_attention"):  # padding, which is left out, gets nothing
            np.testing.assert_allclose(sums, 1, atol=1e-5)
    for _lane, _place, stage in stages(picture(seen)):
        if stage.kind != "heads":
            continue
        scores = np.where(np.isnan(stage.scores), -np.inf, stage.scores)
        expected = torch.from_numpy(scores).softmax(-1).numpy()
        np.testing.assert_allclose(np.nan_to_num(stage.values), expected, atol=1e-5)
    shown = picture(seen)
    for lane, place, stage in stages(shown):
        if stage.skips_from < 0:
            continue
        before = shown.lanes[lane].stages[stage.skips_from]
        assert before.kind == "vectors"
        assert stage.skips_from < place
        norm = stage.key.rpartition(".")[0]
        rows = seen.cache[f"{norm}.skipped"].size(1)
        kept = np.flatnonzero([True] * rows)[: len(before.values)]
        skipped = seen.cache[f"{norm}.skipped"][0].numpy()[kept]
        np.testing.assert_array_equal(before.values, skipped)
    shown = picture(seen)
    last = shown.lanes[-1].stages[-1]
    assert last.kind == "answers"
    assert len(last.rows) == len(last.values) == len(last.words)
    assert np.all(np.diff(last.values, axis=-1) <= 0)
    n_tokens = len(shown.lanes[-1].tokens)
    assert all(-1 <= row < n_tokens for row in last.rows)


def test_answers_stand_at_the_target_of_one_sequence_with_their_truth_where_there_is_one() -> None:
    shown = picture(subject(PRESETS["addition"].experiment))
    (lane,) = shown.lanes
    answered = [lane.tokens[row] for row in lane.stages[-1].rows]
    assert answered[0] == "<bos>"
    assert lane.tokens[: lane.tokens.index("<bos>")] == ("4", "1", "+", "3", "4")
    for name, is_known in (("translate", True), ("vit-digits", True), ("gpt-grammar", False)):
        seen = subject(PRESETS[name].experiment)
        truths = picture(seen, 1).lanes[-1].stages[-1].truths
        assert truths == (tuple(seen.truth[1]) if is_known else ())


def test_known_shapes_have_stages_without_values_and_patches_their_rows() -> None:
    shown = picture(book_example())
    assert [len(lane.stages) for lane in shown.lanes] == [3 + 6 * 6, 4 + 6 * 9]
    assert all(stage.values is None for _lane, _place, stage in stages(shown))
    (lane,) = picture(subject(PRESETS["vit-digits"].experiment)).lanes
    assert lane.stages[0].kind == "image"
    names = [lane.tokens[row] for row in lane.stages[0].rows]
    assert names[0] == "1,1"
    assert len(names) == len({*names}) == int(names[-1].partition(",")[0]) ** 2


def test_what_a_knock_out_changes_is_told_of_the_words_that_are_likeliest() -> None:
    experiment = PRESETS["translate"].experiment
    model = new_model(experiment).eval()
    whole = subject(experiment, model)
    with knocked_out(model, [first_to_go(experiment)]):
        without = subject(experiment, model)
    answers = picture(without, whole=whole).lanes[-1].stages[-1]
    then, now = (seen.cache["output.logits"][0].softmax(-1) for seen in (whole, without))
    names = whole.tokens("vocabulary", 0)
    for row, (words, before) in enumerate(zip(answers.words, answers.before, strict=True)):
        expected = [then[row, names.index(word)].item() for word in words]
        np.testing.assert_allclose(before, expected, atol=1e-6)
        assert answers.were[row] == names[then[row].argmax()]
    kept = slice(len(answers.were))
    most = then[kept].argmax(-1, keepdim=True)
    expected = [part[kept].gather(-1, most).mean().item() for part in (then, now)]
    np.testing.assert_allclose(answers.sure, expected, atol=1e-6)
    assert expected[0] != pytest.approx(expected[1], abs=1e-6)
    assert picture(whole).lanes[-1].stages[-1].before is None

"""What is said of a sentence is what the model says, and the minimal pairs are sentences."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.inspect.readers import reading_run, trained  # noqa: E402
from tfm_core.data.tasks import text_task  # noqa: E402
from tfm_core.data.text.sentiment import SentimentTask, judged  # noqa: E402
from tfm_core.inspect.answers import wrong_first  # noqa: E402
from tfm_core.inspect.attention.example import look_at_text  # noqa: E402
from tfm_core.inspect.text import sentence as core  # noqa: E402
from tfm_core.runs.store import RunStore  # noqa: E402

TEXT = "the food was not bad but the service was slow"


@pytest.fixture(scope="module", params=["mean", "cls"])
def run(request, tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    return reading_run(store, "sentiment", request.param)


@pytest.fixture(scope="module")
def found(run):
    return core.read_sentence(run, TEXT)


def shares(run, words):
    task = text_task(run.experiment.task)
    src = torch.tensor([task.src_vocabulary.encode(words)])
    with torch.no_grad():
        logits = trained(run.experiment).model.eval()(src, torch.ones(1, 1, dtype=torch.int64))
    return logits[0, 0].softmax(-1)[-3:].numpy()


def test_probabilities_are_the_models_also_without_a_word(run, found):
    np.testing.assert_allclose(found.probabilities, shares(run, TEXT.split()), atol=1e-5)
    assert found.probabilities.sum() == pytest.approx(1)
    assert found.labels == ("negative", "neutral", "positive")
    words = TEXT.split()
    for index in (0, 3, 9):
        rest = [*words[:index], *words[index + 1 :]]
        np.testing.assert_allclose(found.without[index], shares(run, rest), atol=1e-5)
    lost = found.probabilities[found.predicted] - found.without[5, found.predicted]
    assert found.needed[5] == pytest.approx(lost)
    is_cls = run.experiment.model.pooling == "cls"
    assert found.keys == (("CLS",) if is_cls else ()) + tuple(TEXT.split())
    assert found.heads.shape == (2, 4, len(found.keys))
    np.testing.assert_allclose(found.heads.sum(-1), 1, atol=1e-5)


def test_rollout_and_relevance_have_a_value_for_each_word(found):
    assert found.rollout.shape == found.relevance.shape == (10,)
    assert (found.rollout >= 0).all()
    assert found.rollout.sum() <= 1 + 1e-6
    assert (found.relevance >= 0).all()
    assert found.relevance.max() > 0


def test_rules_and_labels_are_told_where_there_are_any(run, found):
    assert found.rule is not None
    assert found.rule.label == "negative"
    assert [found.words[index] for index in found.rule.decides] == ["but", "slow"]
    assert core.read_sentence(run, "slow food").rule is None
    alone = core.read_sentence(run, "good")
    assert alone.without.shape == (0, 3)
    assert alone.needed.tolist() == [0]
    example = look_at_text(run, TEXT)
    assert example.answer == (found.labels[found.predicted],)
    assert example.item["truth"] == ["negative"]
    assert example.confidence[0] == pytest.approx(found.probabilities.max(), abs=1e-4)
    readings = wrong_first(run)
    assert len(readings) == 50
    assert {reading.predicted for reading in readings} <= set(found.labels)


def test_what_cannot_be_read_is_said_and_the_table_holds_the_rest(run):
    for text, sentence in [
        ("the fod was good", "“fod” is not a word of this task. Try food"),
        ("", "There is nothing to read"),
        ("not " * 20 + "good", "21 tokens; the limit is 15"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            core.read_sentence(run, text)
    sentences = (tuple(TEXT.split()), *core.minimal_pairs(TEXT.split()).values())
    table = core.compare_with_rule(run, sentences)
    assert table["rule"].tolist() == [judged(words).label for words in sentences]
    for row, words in zip(table.itertuples(), sentences, strict=True):
        expected = shares(run, words)
        assert row.model == ("negative", "neutral", "positive")[int(expected.argmax())]
        assert row.sure == pytest.approx(float(expected.max()), abs=1e-5)


def test_minimal_pairs_are_sentences_that_differ_in_one_thing():
    rng = random.Random(1)
    for _ in range(200):
        words = SentimentTask(2).sample(rng).src
        pairs = core.minimal_pairs(words)
        assert len(pairs) >= 2
        for other in pairs.values():
            assert other != words
            assert judged(other) is not None
    assert core.minimal_pairs(["food", "the"]) == {}

"""What is said of a hidden word is what the model says, beside the exact chances."""

import math

import pytest

torch = pytest.importorskip("torch")

from tests.inspect.readers import reading_run, trained  # noqa: E402
from tfm_core.data.text.hidden_words import word_posterior  # noqa: E402
from tfm_core.data.vocabulary import MASK  # noqa: E402
from tfm_core.inspect.attention.example import look_at_text  # noqa: E402
from tfm_core.inspect.attention.trained import data_of  # noqa: E402
from tfm_core.inspect.text import sentence as core  # noqa: E402
from tfm_core.probe.snapshot import probe_of, take  # noqa: E402
from tfm_core.runs.store import RunStore  # noqa: E402

TEXT = "the dog ___ an apple in the ___"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return reading_run(RunStore(tmp_path_factory.mktemp("runs"), recorded=None), "masked-words")


@pytest.fixture(scope="module")
def found(run):
    return core.fill_blanks(run, core.blank_tokens(run, TEXT))[1]


def test_each_gap_has_the_probabilities_of_the_model_and_the_grammar(run, found):
    data, tokens = data_of(run.experiment), core.blank_tokens(run, TEXT)
    vocabulary = data.task.src_vocabulary
    src = torch.tensor([vocabulary.encode(tokens)])
    with torch.no_grad():
        shares = trained(run.experiment).model.eval()(src, src)[0].softmax(-1)
    assert [blank.position for blank in found] == [2, 7]
    for blank in found:
        assert sum(blank.model.values()) == pytest.approx(1, abs=1e-5)
        for word, share in list(blank.model.items())[:9]:
            expected = float(shares[blank.position, vocabulary.id_of(word)])
            assert share == pytest.approx(expected, abs=1e-6)
        assert blank.heads.shape == (2, 4, len(tokens))
        assert blank.heads.sum(-1) == pytest.approx(1, abs=1e-5)
    truth = word_posterior(tokens, data_of(run.experiment).n_draws)
    for blank in found:
        assert blank.truth == truth[blank.position]
        assert 0 < blank.truth_entropy < math.log(len(blank.truth)) + 1e-9
        assert blank.excess > 0
        assert set(blank.top(3)["word"]) <= set(blank.model)


def test_gaps_alone_are_filled_and_nothing_or_too_much_hidden_is_said(run):
    example = look_at_text(run, TEXT)
    tokens = core.blank_tokens(run, TEXT)
    assert len(example.answer) == len(tokens)
    for said, seen, sure in zip(example.answer, tokens, example.confidence, strict=True):
        assert said == seen or seen == MASK
        assert sure == 1.0 or seen == MASK
    trainer = trained(run.experiment)
    probe, snapshot = probe_of(trainer), take(trainer)
    for item, tokens in zip(probe["items"], snapshot.tokens, strict=True):
        assert "___" in item["src_text"].lower()
        assert len(tokens) == len(item["tgt"])
        assert all(a in (MASK, b) for a, b in zip(item["src"], tokens, strict=True))
    with pytest.raises(ValueError, match="No word is hidden"):
        core.fill_blanks(run, ("the", "dog", "sleeps"))
    with pytest.raises(ValueError, match="6 are hidden"):
        core.fill_blanks(run, (MASK,) * 6)
    _step, (blank,) = core.fill_blanks(run, ("dog", "the", MASK))
    assert blank.truth == {}
    assert blank.truth_entropy == blank.excess == 0

"""A beam beside other ways to write: what it missed is what trying every text says it missed."""

import math

import pytest

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tests.training.test_language import language  # noqa: E402
from tfm_core.data.vocabulary import BOS, EOS, PAD, UNK  # noqa: E402
from tfm_core.inspect.text import beam_comparison, gpt_writing  # noqa: E402
from tfm_core.inspect.text.beam_comparison import compare, wider_than  # noqa: E402

LENGTH = 2
PROMPTS = ("", "a", "the", "s", "th", "an", "he")


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    chosen = language("grammar", training={"steps": 60, "learning_rate": 0.01})
    return trained(tmp_path_factory.mktemp("runs"), chosen, steps=60)


def every_text(model, prompt, length):
    """Return each text of ``length`` tokens, or ended before, with its ln p: by brute force."""
    found, texts = {}, [(tuple(prompt), 0.0)]
    for _ in range(length):
        grown = []
        for ids, score in texts:
            row = torch.tensor([[BOS, *ids]])
            logits = model(row[:, :0], row)[0, -1].double()
            logits[[PAD, BOS, UNK]] = -math.inf
            for token, chance in enumerate(logits.log_softmax(-1).tolist()):
                if chance > -math.inf:
                    grown.append(((*ids, token), score + chance))
        found |= {ids: score for ids, score in grown if ids[-1] == EOS}
        texts = [(ids, score) for ids, score in grown if ids[-1] != EOS]
    return found | dict(texts)


def test_what_a_beam_missed_is_what_brute_force_finds(learned):
    run, trainer = learned
    model = trainer.model.eval()
    missed = []
    for prompt in PROMPTS:
        begun = gpt_writing.prompt_ids(run, prompt)
        with torch.no_grad():
            best = max(every_text(model, begun, LENGTH).values())
        for width in (1, 2, 4):
            found = compare(run, begun, width=width, n=LENGTH)
            # 64 keep every first token of this alphabet, so nothing is dropped
            assert found.wide.score == pytest.approx(best, abs=1e-4)
            expected = math.exp(max(0.0, best - found.best.score))
            assert found.times_missed == pytest.approx(expected, rel=1e-3)
            assert found.others[0][1].score == pytest.approx(best, abs=1e-4)
            missed.append(found.times_missed > 1)
    assert any(missed)
    assert not all(missed)


def test_samples_and_greedy_are_scored_as_beams_are(learned):
    run, trainer = learned
    begun = gpt_writing.prompt_ids(run, "a")
    with torch.no_grad():
        scores = every_text(trainer.model.eval(), begun, LENGTH)
    found = compare(run, begun, width=3, n=LENGTH)
    by_tokens = {gpt_writing.tokens_of(run, ids): score for ids, score in scores.items()}
    for text in (found.greedy, found.wide, *found.samples, *found.steps[-1]):
        assert text.score == pytest.approx(by_tokens[text.tokens], abs=1e-4)
    assert len(found.samples) == beam_comparison.N_SAMPLES
    ordered = [text.score for _by, text in found.others]
    assert ordered == sorted(ordered, reverse=True)


def test_a_prompt_that_has_ended_is_not_continued(learned):
    assert compare(learned[0], (5, EOS), width=2, n=3) is None


@pytest.mark.parametrize(("width", "n", "wider"), [(4, 20, 64), (1, 1, 64), (4, 100, 11)])
def test_the_wider_search_is_bounded(width, n, wider):
    assert wider_than(width, n) == wider
    assert wider_than(16, 100) == 32

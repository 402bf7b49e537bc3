"""A beam beside other ways to write: what it missed is what trying every text says it missed."""

import math

import pytest

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tests.training.test_language import language  # noqa: E402
from tfm_core.data.vocabulary import BOS, EOS, PAD, UNK  # noqa: E402
from tfm_core.inspect import generation  # noqa: E402
from tfm_core.inspect.generation import BeamSettings, wider_than  # noqa: E402
from tfm_core.inspect.generation_source import continuing, source_of  # noqa: E402

LENGTH = 2
PROMPTS = ("", "a", "the", "s", "th", "an", "he")


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    chosen = language("grammar", training={"steps": 60, "learning_rate": 0.01})
    return trained(tmp_path_factory.mktemp("runs"), chosen, steps=60)


def compare(run, prompt, *, width, n, alpha=0.0):
    return generation.compare_beams(continuing(run, tuple(prompt)), BeamSettings(width, n, alpha))


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


def test_what_a_beam_missed_is_found_and_fell_out_where_it_did(learned):
    run, trainer = learned
    model = trainer.model.eval()
    missed = []
    for prompt in PROMPTS:
        begun = source_of(run, prompt).prompt
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
    run, _trainer = learned
    begun = (source_of(run, prompt).prompt for prompt in PROMPTS)
    missed = [
        one for one in (compare(run, ids, width=1, n=LENGTH) for ids in begun) if one.is_missed
    ]
    assert missed
    for found in missed:
        at, text = found.fell_out_at, found.others[0][1]
        kept = [beam.tokens for beam in found.steps[at]]
        assert text.tokens[: len(kept[0])] not in kept
        before = found.steps[at - 1] if at else []
        assert not at or text.tokens[: len(kept[0]) - 1] in [beam.tokens for beam in before]


def test_samples_are_scored_as_beams_and_penalties_order_by_the_score(learned):
    run, trainer = learned
    begun = source_of(run, "a").prompt
    with torch.no_grad():
        scores = every_text(trainer.model.eval(), begun, LENGTH)
    found = compare(run, begun, width=3, n=LENGTH)
    by_tokens = {source_of(run, "").tokens_of(ids): score for ids, score in scores.items()}
    for text in (found.greedy, found.wide, *found.samples, *found.steps[-1]):
        assert text.score == pytest.approx(by_tokens[text.tokens], abs=1e-4)
    assert len(found.samples) == generation.N_SAMPLES
    # the same text may be found in two ways, and its score be rounded in two
    ordered = [round(text.score, 6) for _by, text in found.others]
    assert ordered == sorted(ordered, reverse=True)
    assert compare(learned[0], (5, EOS), width=2, n=3) is None
    run, _trainer = learned
    for alpha in (0.0, 1.0):
        found = compare(run, source_of(run, "th").prompt, width=4, n=3, alpha=alpha)
        for text in (*found.steps[-1], *(text for _by, text in found.others)):
            assert text.ranking == pytest.approx(text.score / ((5 + text.n_written) / 6) ** alpha)
        ranked = [text.ranking for text in found.steps[-1]]
        assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize(("width", "n", "wider"), [(4, 20, 64), (1, 1, 64), (4, 100, 11)])
def test_the_wider_search_is_bounded(width, n, wider):
    assert wider_than(width, n) == wider
    assert wider_than(16, 100) == 32


def test_the_tree_holds_every_kept_text_once_and_its_living_branches_end_in_the_beam(learned):
    found = compare(learned[0], (), width=4, n=5)
    tree = list(found.tree.itertuples())
    assert len(tree) == sum(map(len, found.steps))
    at = {(node.step, node.place): node for node in tree}
    for node in tree:
        if node.step:
            before = at[node.step - 1, node.parent]
            assert node.text[: len(before.text)] == before.text
            assert node.is_new == (not before.is_done)
            assert before.lives or not node.lives
    for node in tree:
        ends = [one for one in tree if one.step == len(found.steps) - 1]
        assert node.lives == any(one.text[: len(node.text)] == node.text for one in ends)

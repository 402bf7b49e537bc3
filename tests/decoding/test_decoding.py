"""Decoding: greedy, by sampling and by beam search, whatever the model."""

import itertools
import math

import pytest
import torch

from tests.models.variants import (
    SEQUENCE_FAMILIES,
    TGT_WORDS,
    caption_batch,
    captioner_model,
    text_batch,
    text_model,
)
from tests.training.test_loop import experiment
from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.decoding import (
    Constraints,
    SamplingConfig,
    beam_steps,
    filtered_probs,
    greedy,
    length_penalty,
    next_logits,
    sampled_steps,
)
from tfm_core.decoding.sampling import _sample
from tfm_core.models.pictures import Captioner
from tfm_core.models.recurrent import RecurrentTranslator
from tfm_core.training.loop import build, train

LONG = 11


def last(steps):
    *_, found = steps
    return found


@pytest.fixture(scope="module", params=["decoder-only", "encoder-decoder", "rnn", "captioner"])
def model(request):
    if request.param == "captioner":
        made = captioner_model(text_position="sinusoidal").eval()
    else:
        made = text_model("recurrent" if request.param == "rnn" else request.param).eval()
    with torch.no_grad():
        made.output.weight *= 3  # an untrained model is sure of nothing
    return made


@pytest.fixture
def src(model):
    if isinstance(model, Captioner):
        return caption_batch()[0][:1]
    return text_batch()[0][:1]


def logits(n=5):
    return torch.randn(n, 23, generator=torch.Generator().manual_seed(3)) * 2


@pytest.mark.parametrize(
    ("family", "steps"),
    [("encoder-decoder", 50), ("encoder-only", 10), ("decoder-only", 120), ("recurrent", 50)],
)
def test_whole_sequence_accuracy_equals_that_of_greedy_decoding(family, steps):
    trainer = build(
        experiment(
            family,
            "copy",
            model={"d_model": 32},
            task={"size": 4, "n_train": 512, "n_validation": 97},
            training={"steps": steps, "batch_size": 32, "learning_rate": 0.01},
        )
    )
    list(train(trainer))
    _, _, whole = trainer.objective.measure(trainer.model, "validation")
    targets = trainer.data.validation.tgt[:, 1:]
    ids = greedy(trainer.model, trainer.data.validation.src, max_len=targets.size(1)).ids
    ids = torch.nn.functional.pad(ids, (0, targets.size(1) - ids.size(1)), value=PAD)
    assert 0.02 < whole < 1.0  # neither trivial
    assert (ids == targets).all(1).float().mean().item() == pytest.approx(whole)


def test_nothing_is_written_behind_the_end():
    for family in SEQUENCE_FAMILIES:
        model = text_model(family)
        decoded = greedy(model, text_batch()[0], max_len=13)
        ended = ((decoded.ids == EOS).cumsum(1) - (decoded.ids == EOS).int()) > 0
        assert (decoded.ids[ended] == PAD).all()
        assert (decoded.confidence[ended] == 0).all()
        assert (decoded.confidence[~ended] > 0).all()
        assert model.training


@pytest.mark.parametrize(
    "sampling", [SamplingConfig(temperature=0), SamplingConfig(1e-6), SamplingConfig(top_k=1)]
)
def test_no_temperature_or_one_choice_is_greedy(model, src, sampling):
    targets = greedy(model, src, max_len=LONG).ids[0].tolist()
    for seed in (0, 7):
        found = last(sampled_steps(model, src, max_len=LONG, sampling=sampling, seeds=[seed]))
        assert found.ids[0].tolist() == targets


def test_a_beam_of_one_is_greedy_and_a_full_one_finds_the_best_text(model, src):
    (beam,) = last(beam_steps(model, src, max_len=LONG, width=1))
    assert list(beam.ids) == greedy(model, src, max_len=LONG).ids[0].tolist()
    """And so it never scores below greedy."""
    length = 2
    best = last(beam_steps(model, src, max_len=length, width=TGT_WORDS**length))[0]
    scores = scores_of(model, src, every_text(length))
    assert best.ids == max(scores, key=scores.get)
    assert best.score == pytest.approx(max(scores.values()), abs=1e-5)
    (plain,) = last(beam_steps(model, src, max_len=length, width=1))
    # the same text in a batch of another size is summed in another order
    assert best.ids == plain.ids or best.score > plain.score
    assert scores[plain.ids] == pytest.approx(plain.score, abs=1e-5)


def test_top_k_nucleus_and_temperature_keep_proportions_and_order():
    for top_k in [1, 3, 22, 23, 99]:
        before = logits().softmax(-1)
        after = filtered_probs(logits(), SamplingConfig(top_k=top_k))
        kept = min(top_k, 23)
        assert ((after > 0).sum(-1) == kept).all()
        assert (
            before.topk(kept).values.min(-1).values >= before.masked_fill(after > 0, 0).amax(-1)
        ).all()
        scale = before.masked_fill(after == 0, 0.0).sum(-1, keepdim=True)
        torch.testing.assert_close(after * scale, before.masked_fill(after == 0, 0.0))
    for top_p in [0.05, 0.3, 0.7, 0.95, 1.0]:
        for before, after in zip(
            logits().softmax(-1), filtered_probs(logits(), SamplingConfig(top_p=top_p)), strict=True
        ):
            kept = before[after > 0]
            assert float(kept.sum()) >= top_p - 1e-6
            assert float(kept.sum() - kept.min()) < top_p  # without its least one it is too small
            assert len(kept) == 23 or float(before[after == 0].max()) <= float(kept.min())
    entropies = []
    for temperature in (0.25, 0.5, 1.0, 2.0, 4.0):
        chances = filtered_probs(logits(), SamplingConfig(temperature))
        torch.testing.assert_close(chances.sum(-1), torch.ones(5))
        assert torch.equal(chances.argsort(-1), logits().argsort(-1))
        entropies.append(float(-(chances * chances.log()).sum()))
    assert entropies == sorted(entropies)
    torch.testing.assert_close(filtered_probs(logits(), SamplingConfig()), logits().softmax(-1))


def test_draws_follow_the_distribution_and_are_those_of_multinomial(model, src):
    seeds = range(4000)
    step = next(sampled_steps(model, src, max_len=1, seeds=seeds))
    share = torch.bincount(step.ids[:, 0], minlength=TGT_WORDS) / len(seeds)
    torch.testing.assert_close(share, step.before[0], atol=0.03, rtol=0)
    chances = filtered_probs(logits(11), SamplingConfig(top_k=7))
    for position, first in ((0, 0), (5, 40)):
        seeds = range(first, first + 11)
        generators = [torch.Generator().manual_seed(seed * 1_000_003 + position) for seed in seeds]
        one_by_one = [
            torch.multinomial(row, 1, generator=generator)
            for row, generator in zip(chances, generators, strict=True)
        ]
        assert torch.equal(_sample(chances, seeds, position), torch.cat(one_by_one))


def test_writing_on_is_as_never_having_stopped_and_tells_what_it_drew_from(model, src):
    seeds = [3, 5]
    whole = last(sampled_steps(model, src, [7, 8], max_len=9, seeds=seeds)).ids
    half = last(sampled_steps(model, src, [7, 8], max_len=5, seeds=seeds)).ids
    assert torch.equal(last(sampled_steps(model, src, half, max_len=9, seeds=seeds)).ids, whole)
    assert not torch.equal(whole[0], whole[1])
    ids = [7, 8]
    for step in sampled_steps(
        model, src, ids, max_len=6, sampling=SamplingConfig(0.7, 5), seeds=[2]
    ):
        torch.testing.assert_close(
            step.before, next_logits(model, src, torch.tensor([ids])).softmax(-1)
        )
        ids = step.ids[0].tolist()
        assert float(step.after[0, ids[-1]]) > 0


def test_what_is_never_written_is_never_drawn_and_a_context_sees_the_last_tokens(model, src):
    never = tuple(range(15))
    step = last(
        sampled_steps(model, src, max_len=7, seeds=range(20), constraints=Constraints(never=never))
    )
    assert int(step.ids.min()) >= 15
    if isinstance(model, RecurrentTranslator):
        pytest.skip("a state holds everything that was read")
    long = torch.tensor([[4, 5, 6, 7, 8, 9]])
    short = model(src, torch.tensor([[BOS, 8, 9]]))[:, -1]
    torch.testing.assert_close(next_logits(model, src, long, context=3), short)


def test_beams_stand_in_order_hang_together_and_are_one_wide_at_least(model, src):
    done = {}
    for beams in beam_steps(model, src, max_len=9, width=5):
        scores = [beam.score for beam in beams]
        assert scores == sorted(scores, reverse=True)
        assert len({beam.ids for beam in beams}) == len(beams) <= 5
        for beam in beams:
            assert beam.is_done == (beam.ids[-1] == EOS)
            assert done.get(beam.ids, beam.score) == beam.score
            if beam.is_done:
                done[beam.ids] = beam.score
    before = None
    for beams in beam_steps(model, src, max_len=9, width=5, alpha=0.7):
        for beam in beams if before else []:
            parent = before[beam.parent]
            assert beam.ids == parent.ids if parent.is_done else beam.ids[:-1] == parent.ids
        before = beams
        for beam in beams:
            divisor = ((5 + len(beam.ids)) / 6) ** 0.7
            assert beam.ranking == pytest.approx(beam.score / divisor)
            assert beam.score == pytest.approx(score_of(model, src, beam.ids), abs=1e-4)
    with pytest.raises(ValueError, match="width is 0; it must be at least 1"):
        next(beam_steps(model, src, max_len=3, width=0))
    with pytest.raises(ValueError, match="writes all positions at once"):
        next(beam_steps(text_model("encoder-only"), text_batch()[0][:1], max_len=3, width=2))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temperature": -1.0}, "temperature is -1.0; it must be 0 or more"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 0.0}, "top_p is 0.0; it must be above 0"),
        ({"top_p": 1.1}, "at most 1"),
    ],
)
def test_what_is_no_distribution_is_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        SamplingConfig(**settings)


def test_forced_tokens_stand_in_draws_and_in_every_beam(model, src):
    free = last(sampled_steps(model, src, max_len=8, seeds=[3, 5])).ids
    forced = last(
        sampled_steps(model, src, max_len=8, seeds=[3, 5], constraints=Constraints(forced={2: 11}))
    ).ids
    assert torch.equal(forced[:, :2], free[:, :2])
    assert forced[:, 2].tolist() == [11, 11]
    given = [*free[0, :2].tolist(), 11]
    on = last(sampled_steps(model, src, given, max_len=8, seeds=[3])).ids
    assert torch.equal(on[0], forced[0])
    beams = last(
        beam_steps(model, src, max_len=3, width=4, constraints=Constraints(forced={0: 11}))
    )
    assert {beam.ids[0] for beam in beams} == {11}
    for beam in beams:
        assert beam.score == pytest.approx(score_of(model, src, beam.ids), abs=1e-4)


@pytest.mark.parametrize("alpha", [0.6, 2.0])
def test_a_wide_beam_finds_the_best_text_under_a_length_penalty(model, src, alpha):
    found = last(beam_steps(model, src, max_len=2, width=TGT_WORDS**2, alpha=alpha))[0]
    scores = scores_of(model, src, every_text(2))
    ranked = {text: score / length_penalty(len(text), alpha) for text, score in scores.items()}
    assert found.ranking == pytest.approx(max(ranked.values()), abs=1e-5)
    assert found.ids == max(ranked, key=ranked.get)


def test_the_length_penalty_is_that_of_wu_and_others():
    assert length_penalty(9, 0.0) == 1
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 0.5) == pytest.approx(math.sqrt(2))
    with pytest.raises(ValueError, match="alpha is -1"):
        next(
            beam_steps(
                text_model("decoder-only"), text_batch()[0][:1], max_len=3, width=2, alpha=-1
            )
        )


def every_text(length):
    """Every text of so many tokens, or ended before."""
    texts = itertools.product(range(TGT_WORDS), repeat=length)
    cut = (text[: text.index(EOS) + 1] if EOS in text else text for text in texts)
    return list(dict.fromkeys(cut))


def scores_of(model, src, texts):
    """ln p of each text, one pass for all of a length."""
    found = {}
    for length in {len(text) for text in texts}:
        alike = [text for text in texts if len(text) == length]
        tgt_in = torch.tensor([[BOS, *text[:-1]] for text in alike])
        with torch.no_grad():
            sources = src.expand(len(alike), *src.shape[1:])
            logs = model(sources, tgt_in).double().log_softmax(-1)
        own = logs.gather(2, torch.tensor(alike)[..., None])[..., 0].sum(1)
        found |= dict(zip(alike, own.tolist(), strict=True))
    return found


def score_of(model, src, text):
    return scores_of(model, src, [text])[text]

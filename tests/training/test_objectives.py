"""What is learned: hidden words and spans, experts, a few examples by heart."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.training.test_loop import experiment
from tfm_core.choices.config import (
    MODEL_CONFIGS,
    OWN_TEXT_TASKS,
    TEXT_TASKS,
    ConfigError,
    tasks_for,
)
from tfm_core.data.text.hidden_words import span_posterior, word_posterior
from tfm_core.data.vocabulary import EOS, MASK, PAD, SPECIALS
from tfm_core.layers.blocks import tokens_at
from tfm_core.layers.experts import MixtureOfExperts
from tfm_core.probe import snapshot
from tfm_core.probe.capture import capture
from tfm_core.probe.form import form_of
from tfm_core.probe.types import Probe
from tfm_core.runs import snapshots
from tfm_core.runs.curves import Curves
from tfm_core.training.events import Measured, Started, Step, to_record
from tfm_core.training.loop import build, train

HIDDEN, RANDOM = 0.8, 0.1  # Devlin et al. 2019, section 3.1; a tenth stays


@pytest.fixture(scope="module")
def trainer():
    return build(experiment("encoder-only", "masked-words", task={"n_train": 2000}))


class Knows(nn.Module):
    """Says the true chances of every hidden word."""

    def __init__(self, objective):
        super().__init__()
        self.objective = objective

    def forward(self, src, words, query_positions=None):
        vocabulary = self.objective.data.task.src_vocabulary
        logits = torch.full((*src.shape, len(vocabulary)), -30.0)
        for row, ids in enumerate(src.tolist()):
            tokens = [vocabulary.token(i) for i in ids if i != PAD]
            for position, shares in word_posterior(tokens, self.objective.data.n_draws).items():
                for word, share in shares.items():
                    logits[row, position, vocabulary.id_of(word)] = math.log(share)
        return logits if query_positions is None else tokens_at(logits, query_positions)


def hidden_batch(trainer, n=1000, seed=3):
    words = trainer.data.train.tgt[:n, 1:]
    generator = torch.Generator().manual_seed(seed)
    return words, *trainer.objective.hide(words, generator)


def test_as_many_words_are_hidden_as_the_task_says_and_others_each_step(trainer):
    words, _src, chosen = hidden_batch(trainer)
    lengths = (words != PAD).sum(1)
    expected = torch.tensor([max(1, round(n * 0.15)) for n in lengths.tolist()])
    assert torch.equal(chosen.sum(1), expected)
    words = trainer.data.train.tgt[:1, 1:].expand(4000, -1)
    n = int((words[0] != PAD).sum())
    _, chosen = trainer.objective.hide(words, torch.Generator().manual_seed(1))
    share = chosen.float().mean(0)[:n]
    expected = float(chosen[0].sum()) / n
    assert (share - expected).abs().max() < 5 * math.sqrt(expected / 4000)
    words = trainer.data.train.tgt[:, 1:].repeat(20, 1)
    src, chosen = trainer.objective.hide(words, torch.Generator().manual_seed(3))
    is_mask = src == trainer.objective.mask_id
    is_kept = src == words
    n = int(chosen.sum())
    others = trainer.objective.mask_id - len(SPECIALS)
    same = RANDOM / others  # the random word is the word itself
    assert not (chosen & (words == PAD)).any()
    assert torch.equal(src[~chosen], words[~chosen])
    for share, cells in (
        (HIDDEN, is_mask & chosen),
        (RANDOM - same, ~is_mask & ~is_kept & chosen),
        (1 - HIDDEN - RANDOM + same, is_kept & chosen),
    ):
        assert float(cells.sum()) / n == pytest.approx(
            share, abs=5 * math.sqrt(share * (1 - share) / n)
        )
    _, src, _ = hidden_batch(trainer, seed=3)
    _, again, _ = hidden_batch(trainer, seed=3)
    _, other, _ = hidden_batch(trainer, seed=4)
    assert torch.equal(src, again)
    assert not torch.equal(src, other)


def test_hidden_words_are_measured_alike_watched_or_not(trainer):
    _loss, accuracy, whole = trainer.objective.measure(Knows(trainer.objective), "validation")
    pairs = trainer.data.validation.pairs
    n_hidden = sum(pair.src.count(MASK) for pair in pairs)
    assert accuracy * n_hidden == pytest.approx(round(accuracy * n_hidden))
    assert whole * len(pairs) == pytest.approx(round(whole * len(pairs)))
    assert 0.2 < whole <= accuracy < 1
    loss, _, _ = trainer.objective.measure(Knows(trainer.objective), "validation")
    assert trainer.objective.loss_lower_bound() == pytest.approx(loss, abs=1e-4)
    _, src, _ = hidden_batch(trainer, n=5)
    read = torch.tensor([[2, 0], [1, 3], [0, 1], [3, 2], [1, 1]])
    trainer.model.eval()
    with torch.inference_mode():
        whole = trainer.model(src, src)
        few = trainer.model(src, src, read)
        with capture(trainer.model) as cache:
            watched = trainer.model(src, src, read)
    torch.testing.assert_close(few, tokens_at(whole, read))
    torch.testing.assert_close(watched, tokens_at(whole, read))
    torch.testing.assert_close(cache["output.logits"], whole)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_what_is_learned_is_what_the_whole_answer_says_of_the_chosen_words(smoothing):
    trainer = build(
        experiment(
            "encoder-only",
            "masked-words",
            model={"position": "rotary"},
            task={"n_train": 500, "size": 30},
            training={"label_smoothing": smoothing},
        )
    )
    model, objective, rows = trainer.model, trainer.objective, torch.arange(70)
    metrics = objective.loss_and_metrics(model, rows, torch.Generator().manual_seed(5))
    words = trainer.data.train.tgt[rows, 1:]
    words = words[:, : int((words != PAD).sum(1).max())]
    src, chosen = objective.hide(words, torch.Generator().manual_seed(5))
    logits = model(src, words)
    hidden = src == objective.mask_id
    expected = F.cross_entropy(logits[chosen], words[chosen], label_smoothing=smoothing)
    records = F.cross_entropy(logits[hidden], words[hidden])
    is_right = (logits.argmax(-1) == words) & hidden
    torch.testing.assert_close(metrics.loss, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics.reported_loss, records, atol=1e-5, rtol=1e-5)
    assert int(metrics.n_correct) == int(is_right.sum())
    assert int(metrics.n_tokens) == int(hidden.sum())
    assert int(metrics.n_exact) == int((is_right == hidden).all(1).sum())
    for grads in zip(
        torch.autograd.grad(metrics.loss, trainer.parameters),
        torch.autograd.grad(expected, trainer.parameters),
        strict=True,
    ):
        torch.testing.assert_close(*grads, atol=1e-5, rtol=1e-4)


def test_a_short_training_comes_nearer_to_the_floor_and_reports_hidden_words_alone():
    short = experiment(
        "encoder-only",
        "masked-words",
        model={"d_model": 32, "n_heads": 4, "d_ff": 32, "position": "rotary"},
        task={"n_train": 2000, "n_validation": 200},
        training={"steps": 150, "batch_size": 64, "learning_rate": 0.01, "validate_every": 150},
    )
    events = list(train(build(short)))
    started = next(event for event in events if isinstance(event, Started))
    measured = [event for event in events if isinstance(event, Measured)]
    last = [event for event in events if isinstance(event, Step)][-1]
    assert measured[0].loss == pytest.approx(started.start_loss, rel=0.15)
    assert started.floor < measured[-1].loss < 0.6 * measured[0].loss
    assert last.loss > 0.5 * started.floor


@pytest.fixture(scope="module")
def span_trainer():
    task = {"n_train": 1000, "n_validation": 60}
    return build(experiment("encoder-decoder", "span-corruption", task=task))


class KnowsSpans(nn.Module):
    """Says the true chances of every next token, given the source and the target so far."""

    def __init__(self, objective):
        super().__init__()
        self.objective = objective

    def forward(self, src, tgt_in):
        task, n_draws = self.objective.data.task, self.objective.data.n_draws
        vocabulary = task.src_vocabulary
        logits = torch.full((*tgt_in.shape, len(vocabulary)), -30.0)
        for row, (ids, written) in enumerate(zip(src.tolist(), tgt_in.tolist(), strict=True)):
            tokens = [vocabulary.token(i) for i in ids if i != PAD]
            answers = span_posterior(tokens, task.percent, n_draws)
            ways = {(*vocabulary.encode(words), EOS): p for words, p in answers.items()}
            for at in range(len(written)):
                so_far = tuple(written[1 : at + 1])
                shares = {}
                for way, p in ways.items():
                    if way[:at] == so_far and at < len(way):
                        shares[way[at]] = shares.get(way[at], 0.0) + p
                for token, share in shares.items():
                    logits[row, at, token] = math.log(share / sum(shares.values()))
        return logits


def test_the_bounds_of_the_reader_who_knows_are_told_when_training_starts(span_trainer):
    objective = span_trainer.objective
    loss, accuracy, whole = objective.measure(KnowsSpans(objective), "validation")
    assert objective.loss_lower_bound() == pytest.approx(loss, abs=1e-4)
    expected = objective.accuracy_upper_bound()
    assert accuracy == pytest.approx(expected, abs=5 * math.sqrt(0.25 / (60 * 4)))
    assert 0 < whole < accuracy < 1
    started = next(event for event in train(span_trainer) if isinstance(event, Started))
    assert started.floor == span_trainer.objective.loss_lower_bound() > 0
    assert started.chance < started.ceiling == span_trainer.objective.accuracy_upper_bound() < 1


def with_experts(weight=0.5, **training):
    model = {"n_experts": 5, "top_k": 2, "balance_weight": weight}
    return experiment("encoder-decoder", "copy", model=model, training=training)


def first_metrics(chosen):
    trainer = build(chosen)
    batch = trainer.batch(1)
    return trainer, batch, trainer.objective.learn(trainer.model, batch)


def test_balance_is_told_of_as_many_experts_as_there_may_be():
    trainer, batch, metrics = first_metrics(with_experts(0.5))
    alone = trainer.objective.learn_from(trainer.model, batch)
    torch.testing.assert_close(metrics.reported, alone.loss)
    n_layers = sum(isinstance(one, MixtureOfExperts) for one in trainer.model.modules())
    added = 0.5 * n_layers * metrics.balance
    torch.testing.assert_close(metrics.loss.detach(), (alone.loss + added).detach())
    assert 1 <= float(metrics.balance) < 5
    trainer, batch, metrics = first_metrics(with_experts(0.0))
    alone = trainer.objective.learn_from(trainer.model, batch)
    assert metrics.balance is not None
    parameters = list(trainer.model.parameters())
    both = [torch.autograd.grad(one.loss, parameters) for one in (metrics, alone)]
    torch.testing.assert_close(*both)
    last = {}
    for weight in (0.0, 1.0):
        steps = [e for e in train(build(with_experts(weight, steps=60))) if isinstance(e, Step)]
        last[weight] = np.mean([event.balance for event in steps[-10:]])
    assert 1 <= last[1.0] < last[0.0]
    for chosen, is_there in ((with_experts(), True), (experiment(), False)):
        curves = Curves()
        curves.extend([to_record(event) for event in train(build(chosen))])
        assert np.isfinite(curves.steps["balance"]).all() == is_there
        assert not np.isnan(curves.steps["loss"]).any()
    with pytest.raises(ConfigError, match="top_k 4 is more than the 3 experts") as why:
        experiment(model={"n_experts": 3, "top_k": 4})
    assert why.value.problems[0].field == "model.top_k"
    experiment(model={"n_experts": 0, "top_k": 4})  # there are none to choose from
    plain, one = (build(experiment(model={"n_experts": n})) for n in (0, 1))
    assert plain.model.state_dict().keys() == one.model.state_dict().keys()


def test_a_snapshot_says_where_the_tokens_went_and_is_read_again(tmp_path):
    trainer = build(with_experts())
    probe = snapshot.probe_of(trainer)
    taken = snapshot.take(trainer, 3)
    snapshots.write_snapshot(tmp_path, taken)
    form = form_of(trainer.experiment, Probe(probe["kind"], probe["items"], n_attended=3))
    read = snapshots.read_snapshot(snapshots.snapshot_path(tmp_path, 0), form)
    names = {
        name for name, one in trainer.model.named_modules() if isinstance(one, MixtureOfExperts)
    }
    assert read.routing.keys() == names
    seen = {}
    for name in names:
        module = trainer.model.get_submodule(name)
        module.router.register_forward_hook(
            lambda _m, _x, logits, name=name: seen.update({name: logits})
        )
    data = trainer.data.validation
    with torch.no_grad():
        trainer.model.eval()(data.src[:3], snapshot.decoder_input(data.tgt[:3, :-1]))
    for name, gates in read.routing.items():
        best, which = seen[name].topk(2)
        expected = torch.zeros_like(seen[name]).scatter(-1, which, F.softmax(best, -1))
        np.testing.assert_allclose(gates, expected.numpy(), atol=2e-3)
        assert ((gates > 0).sum(-1) == 2).all()


STEPS = 150

LEARNED = 0.1

"""Nats: the loss below which a batch is known by heart, and nothing more needs to be trained."""

SEQUENCES = (
    "english-korean",
    "dates",
    "numbers",
    "copy",
    "reverse",
    "sort",
    "addition",
    "select",
    "sort-by-key",
)

"""Tasks that differ in their data alone; each family learns every third of them."""

MORE_STEPS = {"masked-words": 400}  # other words are hidden at each step


@pytest.mark.core(6)
@pytest.mark.parametrize(
    ("family", "task"),
    [
        (family, task)
        for number, family in enumerate(MODEL_CONFIGS)
        for place, task in enumerate(tasks_for(family))
        if task in TEXT_TASKS or task in OWN_TEXT_TASKS
        if task not in SEQUENCES or (place + number) % 3 == 0
    ],
)
def test_one_batch_of_text_is_learned_by_heart(family, task):
    last = learn(family, task, {"n_train": 8} if task in TEXT_TASKS else {})
    assert last.accuracy == 1.0
    assert last.loss < LEARNED


@pytest.mark.parametrize("stem", ["patches", "conv", "conv-stack"])
def test_one_batch_of_pictures_is_learned_by_heart(stem):
    last = learn("vit", "mnist-5000", {"shift": 0.0}, {"stem": stem})
    assert last.accuracy == 1.0
    assert last.loss < LEARNED


@pytest.mark.parametrize("language", ["english", "korean"])
def test_one_batch_of_captions_is_learned_by_heart(language):
    still = {"rotation": 0.0, "scale": 0.0, "slant": 0.0, "shift": 0.0}
    last = learn(
        "captioner", "captions", {"n_train": 8, "n_digits": 3, "language": language, **still}
    )
    assert last.accuracy == 1.0
    assert last.loss < LEARNED


def learn(family, task, task_settings, model_settings=None):
    n_steps = MORE_STEPS.get(task, STEPS)
    heads = {} if family == "recurrent" else {"n_heads": 4, "d_ff": 32}
    chosen = experiment(
        family,
        task,
        model={"d_model": 32, **heads, **(model_settings or {})},
        task=task_settings,
        training={
            "steps": n_steps,
            "batch_size": 8,
            "learning_rate": 0.01,
            "validate_every": n_steps,
        },
    )
    trainer = build(chosen)
    trainer.objective.n_train = 8  # the same batch again and again
    last = None
    for event in train(trainer):
        if isinstance(event, Step):
            last = event
            if last.accuracy == 1.0 and last.loss < LEARNED:
                break
    return last

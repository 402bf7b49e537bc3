"""Mistakes that are made in a healthy model."""

import itertools
import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from tests.models.variants import SMALL
from tests.training.test_loop import experiment
from tfm_core.choices.config import (
    ConfigError,
    EncoderDecoderConfig,
    Experiment,
    from_json,
    to_json,
)
from tfm_core.choices.config.codec import to_query
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape
from tfm_core.decoding.greedy import greedy
from tfm_core.layers.attention import attention_scores, attention_weights, fused_attention
from tfm_core.layers.masks import causal_mask
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.training.events import Measured
from tfm_core.training.loop import build, train
from tfm_core.training.losses import cross_entropy, lowest_loss

D_MODEL = SMALL["d_model"]

OF_MASK = {"causal": "", "none": "no-causal-mask", "transposed": "mask-transposed"}


def test_the_fused_kernel_takes_the_scale():
    for divisor in [None, 1.0, 7.0]:
        for has_bias in [True, False]:
            q, k, v = (torch.randn(2, 3, 7, 11) for _ in range(3))
            mask, bias = causal_mask(7), torch.randn(3, 7, 7) if has_bias else None
            scores, _masked = attention_scores(q, k, None, bias, divisor=divisor)
            dots = torch.einsum("bhqd,bhkd->bhqk", q, k) / (divisor or math.sqrt(11))
            torch.testing.assert_close(scores, dots if bias is None else dots + bias)
            fused = fused_attention(q, k, v, mask, bias, divisor=divisor)
            expected = attention_weights(q, k, mask, bias, divisor=divisor) @ v
            torch.testing.assert_close(fused, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "field", "sentence"),
    [
        ({"norm": "none", "mistakes": "shared-norm"}, "mistakes", "There is no norm to share"),
        ({"norm": "none", "final_norm": "always"}, "final_norm", "A last norm needs a norm"),
        (
            {"norm": "none", "mistakes": "residual-from-normed"},
            "mistakes",
            "needs LayerNorm or RMSNorm",
        ),
        (
            {"norm_first": False, "mistakes": "residual-from-normed"},
            "mistakes",
            "needs pre-norm blocks",
        ),
        (
            {"norm_first": False, "mistakes": "feed-forward-residual-from-normed"},
            "mistakes",
            "needs pre-norm blocks",
        ),
    ],
)
def test_mistakes_that_cannot_be_made_together_are_refused_with_a_sentence(
    settings, field, sentence
):
    with pytest.raises(ConfigError, match=sentence) as error:
        EncoderDecoderConfig.parse({**SMALL, **settings})
    assert [problem.field for problem in error.value.problems] == [field]


@pytest.mark.core(1)
@pytest.mark.parametrize(
    ("family", "causality"),
    [("encoder-decoder", "none"), ("decoder-only", "none"), ("encoder-decoder", "transposed")],
)
def test_without_its_mask_training_looks_perfect_and_what_is_written_is_wrong(family, causality):
    chosen = experiment(
        family,
        "copy",
        model={"mistakes": OF_MASK[causality], "d_model": 32, "d_ff": 64, "position": "learned"},
        task={"size": 8, "n_train": 2000, "n_validation": 100},
        training={"steps": 300, "batch_size": 64, "learning_rate": 0.01, "validate_every": 300},
    )
    trainer = build(chosen)
    told = [event for event in train(trainer) if isinstance(event, Measured)][-1]
    assert told.accuracy > 0.98  # with the answers in sight
    split = trainer.data.validation
    written = greedy(trainer.model, split.src, max_len=split.tgt.size(1) - 1)
    truth = split.tgt[:, 1 : written.ids.size(1) + 1]
    assert (written.ids == truth).all(1).float().mean() < 0.3
    # what is written first is what the model would say of <bos> alone: nothing follows it yet
    alone = trainer.model.eval()(split.src, split.tgt[:, :1])[:, -1].argmax(-1)
    assert torch.equal(written.ids[:, 0], alone)


def test_probabilities_for_logits_are_softmaxed_twice_and_have_their_bound():
    logits, targets = torch.randn(11, 7), torch.randint(7, (11,))
    twice = logits.softmax(-1).softmax(-1)
    expected = -twice[torch.arange(11), targets].log().mean()
    found = cross_entropy(logits, targets, mistakes=("softmax-before-loss",))
    torch.testing.assert_close(found, expected)
    right = cross_entropy(logits, targets, mistakes=(), smoothing=0.1, ignored=3)
    torch.testing.assert_close(
        right, F.cross_entropy(logits, targets, label_smoothing=0.1, ignore_index=3)
    )
    for smoothing, n_classes, mistakes in [
        *itertools.product([0.0, 0.1, 0.6, 0.97], [2, 7], [(), ("softmax-before-loss",)])
    ]:
        bound = lowest_loss(smoothing, n_classes, mistakes)
        target = torch.zeros(1, dtype=torch.long)
        logits = torch.zeros(1, n_classes, requires_grad=True)
        optimizer = torch.optim.Adam([logits], lr=0.1)
        for _ in range(400):
            optimizer.zero_grad()
            loss = cross_entropy(logits, target, mistakes=mistakes, smoothing=smoothing)
            loss.backward()
            optimizer.step()
        found = float(loss.detach())
        assert found == pytest.approx(bound, abs=5e-3)
        assert found > bound - 1e-5


def test_softmax_before_the_loss_is_said_and_the_right_way_in_no_link():
    trainer = build(experiment(training={"mistakes": "softmax-before-loss"}))
    n = trainer.objective.n_classes
    assert trainer.objective.loss_lower_bound() == pytest.approx(math.log(math.e + n - 1) - 1)
    told = [event for event in train(trainer) if isinstance(event, Measured)]
    assert all(math.log(math.e + n - 1) - 1 < one.loss < math.log(n) + 0.1 for one in told)
    blank = Experiment()
    assert not {"model.mistakes", "training.mistakes"} & set(to_query(blank))
    said = "\n".join(line for line in to_json(blank).splitlines() if '"mistakes"' not in line)
    assert "mistakes" not in said
    assert from_json(said) == blank


COMPILER = """
import sys
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import parameter_table
for name in ("gpt2-small", "transformer-base", "vit-ti"):
    parameter_table(ARCHITECTURES[name].model, ARCHITECTURES[name].shape)
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("name", ["translate", "vit-text", "captions", "gpt-grammar", "dates"])
def test_an_unfilled_model_has_the_names_and_shapes_of_a_real_one(name):
    experiment = PRESETS[name].experiment
    shape = data_shape(experiment)
    real = build_model(experiment.model, shape).state_dict()
    with init_on_meta():
        model = build_model(experiment.model, shape)
    found = model.state_dict()
    assert {key: value.shape for key, value in found.items()} == {
        key: value.shape for key, value in real.items()
    }
    assert all(weight.is_meta for weight in model.parameters() if weight.ndim == 2)


def test_laying_out_a_model_does_not_load_the_compiler():
    done = subprocess.run(
        [sys.executable, "-c", COMPILER], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]

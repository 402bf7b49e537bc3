"""Presets: experiments that are known to learn, with the time they take and what they reach.

``seconds`` are CPU-seconds of training on one thread of a plain 2-core machine; ``reaches`` is
what was measured there on unseen examples, with seeds that no setting was chosen with where a
comment says so (``benchmarks.goals``), else with those that the settings were chosen with.
``benchmarks/RESULTS.md`` holds the seconds; a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfm_core.config import Experiment
from tfm_core.config.codec import default_sections
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True)
class Preset:
    """A named experiment. learns: what, in a sentence; reaches: how well, in words."""

    name: str
    label: str
    learns: str
    reaches: str
    seconds: int
    experiment: Experiment


def _preset(
    name: str,
    label: str,
    learns: str,
    reaches: str,
    *,
    seconds: int,
    family: str,
    task: str,
    **changes: Mapping[str, Any],
) -> Preset:
    """Return a preset. changes: of the sections model, task_settings and training."""
    values = default_sections(family, task)
    values["model"] |= changes.get("model", {})
    values["task"] |= changes.get("task_settings", {})
    values["training"] = dict(changes.get("training", {}))  # what it does not say is filled in
    return Preset(name, label, learns, reaches, seconds, Experiment.parse(values))


_LLAMA = {
    "position": "rotary",
    "norm": "rmsnorm",
    "activation": "swiglu",
    "bias": False,
    "n_kv_heads": 2,
    "d_ff": 88,  # three matrices of it are as large as GPT-2's two of 128
}
BLOCK_STYLES: Mapping[str, Mapping[str, Any]] = {
    "gpt-2": {"position": "learned", "activation": "gelu_tanh", "tie_embeddings": True},
    "llama": {**_LLAMA, "rope_theta": 500_000.0},
    "qwen": {**_LLAMA, "qk_norm": True, "tie_embeddings": True, "rope_theta": 1_000_000.0},
    "mixtral": {
        **_LLAMA,
        "rope_theta": 1_000_000.0,
        "d_ff": 44,  # a token passes two experts
        "n_experts": 8,
        "top_k": 2,
        "balance_weight": 0.02,
    },
}
"""The blocks of GPT-2, Llama 3, Qwen 3 and Mixtral as settings; alike are width and depth, and
about alike the feed-forward parameters that act on a token."""


_ATTENTION_ALONE = {"d_ff": 0, "n_heads": 2, "position": "rotary"}


def _in_small(name: str, label: str, learns: str, seconds: int) -> Preset:
    """Return a model with the blocks of a large one, which learns to translate."""
    return _preset(
        name,
        label,
        learns,
        N_("99% of unseen sentences"),  # seeds 3 to 7: 98.7 to 100
        seconds=seconds,
        family="decoder-only",
        task="english-korean",
        model=BLOCK_STYLES[name],
        training={"steps": 600, "learning_rate": 0.006, "validate_every": 50},
    )


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _preset(
            "vit-digits",
            N_("See digits"),
            N_("A Vision Transformer learns from 5,000 handwritten digits."),
            N_("98 to 99% of unseen digits"),  # seeds 3 and 4: 98.45 and 98.66
            seconds=47,
            family="vit",
            task="mnist-5000",
            model={"stem": "conv"},
            task_settings={"shift": 2.0, "rotation": 12.0, "scale": 0.15},
            training={
                "steps": 1400,
                "batch_size": 128,
                "optimizer": "muon",
                "learning_rate": 0.02,
                "weight_decay": 0.2,
            },
        ),
        _preset(
            "translate",
            N_("Translate into Korean"),
            N_("English into Korean: verb last, a particle on every noun."),
            N_("99.9% of unseen sentences"),  # seeds 3 to 7: 99.9 to 100
            seconds=10,
            family="encoder-decoder",
            task="english-korean",
            training={"steps": 630, "learning_rate": 0.006},
        ),
        _preset(
            "dates",
            N_("Read dates"),
            N_("Turns written dates into one form: 1964-06-16."),
            N_("99% of unseen dates"),  # seeds 3 to 7: 99.2 to 99.7
            seconds=14,
            family="encoder-decoder",
            task="dates",
            training={"steps": 700, "learning_rate": 0.006},
        ),
        _preset(
            "reverse",
            N_("Reverse a sequence"),
            N_("Writes letters backwards: a diagonal in cross-attention."),
            N_("99% of unseen sequences"),  # seeds 3 to 7: 99.9 to 100
            seconds=8,
            family="encoder-decoder",
            task="reverse",
            training={"steps": 700},
        ),
        _preset(
            "copy",
            N_("Copy a sequence"),
            N_("The simplest task: attend to the same position."),
            N_("99% of unseen sequences"),  # seeds 3 to 7: 99.9 to 100
            seconds=7,
            family="encoder-decoder",
            task="copy",
            training={"steps": 600},
        ),
        _preset(
            "sort",
            N_("Sort digits"),
            N_("Writes digits in ascending order."),
            N_("99% of unseen sequences"),  # seeds 3 to 7: 99.7 to 100
            seconds=9,
            family="encoder-decoder",
            task="sort",
            training={"steps": 800},
        ),
        _preset(
            "numbers",
            N_("Read numbers"),
            N_("Turns number words into digits."),
            N_("99% of unseen numbers"),  # seeds 3 to 7: 99.4 to 100
            seconds=6,
            family="encoder-decoder",
            task="numbers",
            training={"steps": 700},
        ),
        _preset(
            "addition",
            N_("Add like a GPT"),
            N_("A decoder-only model continues “12+34=” digit by digit."),
            # seeds 3 to 7: 99.1 to 100
            N_("99% of unseen sums (most seen swapped: 10+73 for 73+10)"),
            seconds=16,
            family="decoder-only",
            task="addition",
            model={"position": "learned"},
            training={"steps": 2000},
        ),
        _preset(
            "sort-at-once",
            N_("Sort in one pass"),
            N_("An encoder-only model writes all positions at once."),
            N_("99% of unseen sequences"),  # seeds 3 to 7: 100
            seconds=8,
            family="encoder-only",
            task="sort",
            training={"steps": 800},
        ),
        _preset(
            "vit-mnist",
            N_("All of MNIST"),
            N_("A Vision Transformer learns from 60,000 digits (downloaded once)."),
            N_("99.3% of the official test set"),
            seconds=59,
            family="vit",
            task="mnist",
            model={"stem": "conv"},
            training={
                "steps": 2200,
                "batch_size": 128,
                "batch_warmup": 0.4,
                "optimizer": "muon",
                "learning_rate": 0.01,
                "weight_decay": 0.15,
            },
        ),
        _preset(
            "vit-text",
            N_("The notebook’s tiny ViT"),
            N_("The MyViT notebook: 1,770 parameters learn MNIST (downloaded once)."),
            N_("89% of the official test set"),
            seconds=28,
            family="vit",
            task="mnist",
            model={
                "d_model": 8,
                "n_heads": 2,
                "d_ff": 24,
                "n_layers": 2,
                "patch_size": 4,
                "pooling": "cls",
                "final_norm": "never",
                "mistakes": ("feed-forward-residual-from-normed", "sliced-heads"),
            },
            task_settings={"shift": 0.0},
            training={
                "steps": 2345,
                "batch_size": 128,
                "optimizer": "adam",
                "learning_rate": 0.005,
                "weight_decay": 0.0,
                "beta2": 0.999,
                "schedule": "constant",
                "warmup": 0.0,
                "clip_norm": 0.0,
            },
        ),
        _preset(
            "sentiment",
            N_("Judge a review"),
            N_("An encoder-only model tells praise from blame."),
            N_("99% of unseen sentences"),  # seeds 3 to 7: 99.0 to 100
            seconds=13,
            family="encoder-only",
            task="sentiment",
            model={"position": "rotary"},
            training={"steps": 1200},
        ),
        _preset(
            "masked-words",
            N_("Guess hidden words"),
            N_("BERT's task: guess hidden words from both sides."),
            # seeds 3 to 7: 0.033 to 0.053, 0.041 on average
            N_("0.04 nats above the lowest possible loss (1 in 15 sentences resembles training)"),
            seconds=24,
            family="encoder-only",
            task="masked-words",
            model={"position": "learned"},
            task_settings={"n_train": 100_000},
            training={
                "steps": 840,
                "batch_size": 256,
                "optimizer": "muon",
                "learning_rate": 0.02,
                "validate_every": 200,
            },
        ),
        _preset(
            "span-corruption",
            N_("Fill in like T5"),
            N_("T5's task and relative bias: write the hidden spans."),
            # seeds 3 and 4: 0.045 and 0.047
            N_("0.05 nats a token above the lowest possible loss (1 in 5 resembles training)"),
            seconds=37,
            family="encoder-decoder",
            task="span-corruption",
            model={"position": "t5-bias"},
            task_settings={"n_train": 40000, "n_validation": 200},
            training={"steps": 1600, "batch_size": 128},
        ),
        _preset(
            "translate-additive",
            N_("Translate as in 2015"),
            N_("An RNN with additive attention translates into Korean."),
            N_("99% of unseen sentences"),  # seeds 3 to 7: 99.9 to 100
            seconds=10,
            family="recurrent",
            task="english-korean",
            training={"steps": 400},
        ),
        _preset(
            "translate-luong",
            N_("Luong’s attention"),
            N_("An LSTM that steps first, then attends."),
            N_("99% of unseen sentences"),  # seeds 3 to 7: 99.9 to 100
            seconds=6,
            family="recurrent",
            task="english-korean",
            model={"cell": "lstm", "attention": "general"},
            training={"steps": 500},
        ),
        _preset(
            "by-heart",
            N_("Five random pairs by heart"),
            N_("Pairs of 100 random ids: no rule to learn, only five pairs to memorise."),
            N_("all of the five pairs, and no others"),  # seeds 3 to 7: 100
            seconds=3,
            family="encoder-decoder",
            task="own-pairs",
            task_settings={
                "data": "example-random",
                "src_len": 100,
                "tgt_len": 100,
                "n_src": 462,
                "n_tgt": 469,
            },
            training={"steps": 200, "batch_size": 5, "learning_rate": 0.006},
        ),
        _preset(
            "captions",
            N_("Describe pictures"),
            N_("A ViT encoder and a text decoder say which digits are where."),
            N_("about 95.5% of unseen pictures"),  # seed 3: 95.6
            seconds=79,
            family="captioner",
            task="captions",
            model={"n_encoder_layers": 3},
            task_settings={"n_train": 60000, "rotation": 15.0, "slant": 0.3},
            training={
                "steps": 1230,
                "warmup": 0.05,
                "batch_size": 48,
                "optimizer": "muon",
                "learning_rate": 0.014,
                "weight_decay": 0.3,
                "validate_every": 150,
            },
        ),
        _preset(
            "captions-korean",
            N_("Describe pictures in Korean"),
            N_("The same pictures in Korean: the verb at the end."),
            N_("about 96% of unseen pictures"),
            seconds=74,
            family="captioner",
            task="captions",
            model={"query_key_gain": 2.0},
            task_settings={"language": "korean", "n_train": 60000},
            training={
                "steps": 2100,
                "warmup": 0.05,
                "batch_size": 32,
                "optimizer": "muon",
                "learning_rate": 0.009,
                "weight_decay": 0.3,
                "validate_every": 200,
            },
        ),
        _preset(
            "gpt-grammar",
            N_("Write sentences"),
            N_("A small GPT learns a toy English grammar."),
            # seeds 3 to 7: loss within 0.6 to 1.9% of the lowest, 1.1% on average
            N_("perplexity 5.2, within 2% of the lowest possible loss"),
            seconds=18,
            family="decoder-only",
            task="grammar",
            model={"position": "learned"},
            training={"steps": 1500},
        ),
        _preset(
            "gpt-text",
            N_("Write like Alice"),
            N_("A small GPT reads a chapter of Alice in Wonderland."),
            N_("3.1 bits a character on its unseen end"),
            seconds=61,
            family="decoder-only",
            task="own-text",
            model={"n_layers": 3, "d_ff": 256, "dropout": 0.2, "position": "learned"},
            task_settings={"unit": "characters"},
            training={"steps": 700, "batch_size": 32, "learning_rate": 0.003, "validate_every": 50},
        ),
        _preset(
            "addition-3",
            N_("Add three digits"),
            N_("A three-layer GPT adds numbers of up to three digits."),
            N_("99% of unseen sums"),
            seconds=44,
            family="decoder-only",
            task="addition",
            model={"n_layers": 3, "position": "learned"},
            task_settings={"size": 3, "n_train": 100_000},
            training={
                "steps": 1650,
                "batch_size": 128,
                "optimizer": "muon",
                "learning_rate": 0.018,
                "validate_every": 200,
            },
        ),
        _preset(
            "induction",
            N_("Repeat what came before"),
            N_("Attention alone, in two layers, continues a repeat: an induction head forms."),
            N_("99% of the repeats"),
            seconds=10,
            family="decoder-only",
            task="repeats",
            model=_ATTENTION_ALONE,
            task_settings={"context": 32},
            training={
                "steps": 300,
                "learning_rate": 0.003,
                "validate_every": 10,
                "snapshots": 64,
            },
        ),
        _preset(
            "chains",
            N_("Read a Markov chain"),
            N_("Attention alone, in two layers, counts pairs of letters in each new chain."),
            N_("0.01 nats above the lowest possible loss"),
            seconds=35,
            family="decoder-only",
            task="markov-chains",
            model=_ATTENTION_ALONE,
            training={
                "steps": 600,
                "learning_rate": 0.003,
                "validate_every": 15,
                "snapshots": 64,
            },
        ),
        _preset(
            "sinks",
            N_("Copy back, or rest"),
            N_("One head copies the letter before an x, y or z; elsewhere it has nothing to do."),
            N_("0.01 nats above the lowest possible loss"),
            seconds=7,
            family="decoder-only",
            task="back-copy",
            model={**_ATTENTION_ALONE, "n_layers": 1, "n_heads": 1},
            task_settings={"context": 32},
            training={
                "steps": 500,
                "learning_rate": 0.01,
                "validate_every": 15,
                "snapshots": 64,
            },
        ),
        _preset(
            "adder",
            N_("Add with 500 parameters"),
            N_("A one-layer decoder adds binary numbers, and every weight can be read."),
            N_("all unseen sums, with most seeds"),  # of 0 to 5: not 4
            seconds=16,
            family="decoder-only",
            task="column-sums",
            model={
                "d_model": 8,
                "n_heads": 4,
                "head_dim": 2,
                "n_kv_heads": 1,
                "d_ff": 10,
                "n_layers": 1,
                "activation": "swiglu",
                "norm": "rmsnorm",  # without, only some seeds learn
                "position": "rotary",
                "window": 4,
                "tie_embeddings": True,
                "projection_bias": False,
            },
            task_settings={"context": 18, "n_train": 400},
            training={
                "steps": 1600,
                "batch_size": 64,
                "learning_rate": 0.02,
                "weight_decay": 0.0,
                "validate_every": 100,
                "snapshots": 64,
            },
        ),
        _preset(
            "grokking",
            N_("Add on a clock"),
            N_("A one-layer encoder learns sums by heart, and long after how to add."),
            N_("99% of unseen sums"),
            seconds=37,
            family="encoder-only",
            task="modular-addition",
            model={
                "d_model": 128,
                "d_ff": 512,
                "n_layers": 1,
                "activation": "relu",
                "norm": "none",
                "position": "learned",
                "pooling": "cls",
            },
            task_settings={"size": 97, "n_train": 3763, "n_validation": 1000, "n_test": 4646},
            training={
                "steps": 1300,
                "batch_size": 512,
                "learning_rate": 0.004,
                "weight_decay": 1.0,
                "beta2": 0.98,
                "schedule": "constant",
                "warmup": 0.01,
                "clip_norm": 0.0,
                "validate_every": 25,
                "snapshots": 64,
            },
        ),
        _preset(
            "memorising",
            N_("Memorise wrong labels"),
            N_("A ViT reads 1,000 digits, of which 30% have a wrong label."),
            N_("all wrong labels learned by heart"),
            seconds=22,
            family="vit",
            task="mnist-5000",
            task_settings={"shift": 0.0, "n_validation": 3500, "label_noise": 0.3},
            training={
                "steps": 800,
                "learning_rate": 0.003,
                "weight_decay": 0.0,
                "validate_every": 100,
                "snapshots": 64,
            },
        ),
        _preset(
            "select",
            N_("Copy past distractors"),
            N_("Copies the letters and skips the dots between them."),
            N_("99% of unseen sequences"),
            seconds=16,
            family="encoder-decoder",
            task="select",
            training={"steps": 700},
        ),
        _preset(
            "two-sum",
            N_("Find two that make ten"),
            N_("Each digit looks for its partner: do two of them add up to ten?"),
            N_("99% of unseen sequences"),
            seconds=4,
            family="encoder-only",
            task="two-sum",
            training={"steps": 300},
        ),
        _preset(
            "brackets",
            N_("Match brackets"),
            N_("Balanced or not? In half of the wrong ones counting does not tell."),
            N_("97% of unseen sequences; guessing: 50%"),
            seconds=18,
            family="encoder-only",
            task="brackets",
            model={"position": "rotary"},
            task_settings={"size": 16},
            training={"steps": 900, "optimizer": "muon", "learning_rate": 0.02},
        ),
        _preset(
            "lines",
            N_("Fit a line in context"),
            N_("A GPT reads examples of y = w·x + noise; each sequence has another w."),
            N_("0.07 nats above the lowest possible loss"),
            seconds=21,
            family="decoder-only",
            task="lines",
            model={"position": "rotary"},
            task_settings={"context": 24},
            training={"steps": 600, "optimizer": "muon", "learning_rate": 0.015},
        ),
        _in_small(
            "gpt-2",
            N_("GPT-2 in small"),
            N_("GPT-2’s blocks translate: learned positions, LayerNorm, GELU, biases."),
            seconds=12,
        ),
        _in_small(
            "llama",
            N_("Llama in small"),
            N_("Llama 3’s blocks translate: RoPE, RMSNorm, SwiGLU, shared keys, no biases."),
            seconds=13,
        ),
        _in_small(
            "qwen",
            N_("Qwen in small"),
            N_("Qwen 3’s blocks translate: Llama’s, with normed queries and keys."),
            seconds=16,
        ),
        _in_small(
            "mixtral",
            N_("Mixtral in small"),
            N_("Mixtral’s blocks translate: Llama’s, with 2 of 8 experts for each token."),
            seconds=21,
        ),
    )
}

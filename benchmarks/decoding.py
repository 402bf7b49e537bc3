"""Writing a text with a key-value cache, against reading the whole text for each token.

The texts are the same, or it says so. The end is never written, so that all have one length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.timing import TimeRange, measure, ratio
from tfm_core.config import MODEL_CONFIGS, CaptionerConfig
from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.decoding import Constraints, beam_steps, reading, sampled_steps
from tfm_core.decoding.reading import NextLogits, Writes
from tfm_core.models.build import CaptionShape, TextShape, build_captioner, build_text
from tfm_core.models.text import DecoderOnly

BATCH, LENGTH, WORDS, SOURCE = 64, 128, 64, 32
WIDTH, LONG = 4, 512
NEVER = (PAD, EOS)  # a trained model ends a text, and writes no padding into one
COLUMNS = ["", "keys kept, CPU-microseconds a token", "read again", "faster"]
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128}


def tables(*, quick: bool) -> Iterator[Table]:
    """Write texts both ways in turn, and check that they are the same."""
    rounds = 1 if quick else 4
    models, rows, reached = _models(), [], {}
    for name, (model, src) in models.items():
        row, gain = _beside(
            name,
            partial(_written, reading, model, src),
            partial(_written, _again, model, src),
            tokens=BATCH * LENGTH,
            rounds=rounds,
        )
        goal = f"decoding: {name}"
        reached[goal] = Figure(gain)
        rows.append([*row, goal_cell(goal, gain)])
    yield Table(
        f"{BATCH} texts of {LENGTH} tokens, written greedily",
        [*COLUMNS, "target"],
        rows,
        [
            f"Two layers that write, d_model {SIZES['d_model']}; sources of {SOURCE} tokens, "
            "pictures of 16 patches; fp32, equal texts."
        ],
        reached,
    )
    yield Table(
        f"Texts of {LENGTH} tokens about one source, drawn at random and searched by beams",
        COLUMNS,
        list(_drawn_and_searched(models, 1)),
        ["The same models, the same draws. Drawing and sorting beams count on both sides."],
    )
    yield Table(
        f"One text of {LONG} tokens, by a model of the preset gpt-text's size",
        COLUMNS,
        [_long(1 if quick else 2)],
        ["The mean over all tokens, from the first to the last."],
    )


def _beside(
    name: str, kept: Callable[[], Tensor], again: Callable[[], Tensor], *, tokens: int, rounds: int
) -> tuple[list[str], float]:
    """Return a row of a table, and how many times as fast the first one is."""
    texts: dict[str, Tensor] = {}
    ways = {"kept": lambda: texts.update(kept=kept()), "again": lambda: texts.update(again=again())}
    seconds = measure(ways, rounds=rounds, warmup=int(rounds > 1))
    if not torch.equal(texts["kept"], texts["again"]):
        raise AssertionError(f"{name}: the two ways do not write the same")
    gain = ratio(seconds["again"], seconds["kept"])
    spent = [
        TimeRange.of([1e6 * value / tokens for value in values]).show(digits=0)
        for values in seconds.values()
    ]
    return [name, *spent, gain.show("x", 1)], gain.median


def _drawn_and_searched(
    models: Mapping[str, tuple[Writes, Tensor]], rounds: int
) -> Iterator[list[str]]:
    ways: dict[str, tuple[int, Callable[[Writes, Tensor], Tensor]]] = {
        f"{BATCH} samples": (BATCH, _drawn),
        f"a beam of {WIDTH}": (WIDTH, _searched),
    }
    for name, (model, src) in models.items():
        for way, (n, write) in ways.items():
            kept = partial(write, model, src[:1])
            again = partial(_watched, write, model, src[:1])
            row, _gain = _beside(f"{name}, {way}", kept, again, tokens=n * LENGTH, rounds=rounds)
            yield row


def _long(rounds: int) -> list[str]:
    torch.manual_seed(0)
    config = MODEL_CONFIGS["decoder-only"].parse(
        {"n_layers": 3, "d_ff": 256, "position": "learned", "max_len": LONG + 1}
    )
    model = build_text(config, TextShape(WORDS, WORDS)).eval()  # type: ignore[arg-type]
    assert isinstance(model, DecoderOnly)
    nothing = torch.zeros(1, 0, dtype=torch.int64)
    kept = partial(_written, reading, model, nothing, LONG)
    again = partial(_written, _again, model, nothing, LONG)
    return _beside("decoder-only", kept, again, tokens=LONG, rounds=rounds)[0]


@torch.inference_mode()
def _drawn(model: Writes, src: Tensor) -> Tensor:
    steps = sampled_steps(
        model, src, max_len=LENGTH, seeds=range(BATCH), constraints=Constraints(never=NEVER)
    )
    (last,) = deque(steps, maxlen=1)
    return last.ids


@torch.inference_mode()
def _searched(model: Writes, src: Tensor) -> Tensor:
    steps = beam_steps(
        model, src, max_len=LENGTH, width=WIDTH, constraints=Constraints(never=NEVER)
    )
    (last,) = deque(steps, maxlen=1)
    return torch.tensor([beam.ids for beam in last])


def _watched(write: Callable[[Writes, Tensor], Tensor], model: Writes, src: Tensor) -> Tensor:
    """Write while a module is recorded, so that there is no cache."""
    handle = model.output.register_forward_hook(lambda *_: None)
    try:
        return write(model, src)
    finally:
        handle.remove()


def _models() -> dict[str, tuple[Writes, Tensor]]:
    torch.manual_seed(0)
    src = torch.randint(4, WORDS, (BATCH, SOURCE))
    shape = TextShape(WORDS, WORDS)
    both = {"n_encoder_layers": 2, "n_decoder_layers": 2}
    pictures = build_captioner(
        CaptionerConfig.parse({**SIZES, **both, "patch_size": 7}),
        CaptionShape(28, 1, WORDS, LENGTH + 1),
    )
    text = {"encoder-decoder": both, "decoder-only": {"n_layers": 2}}
    found: dict[str, tuple[Writes, Tensor]] = {}
    for family, layers in text.items():
        config = MODEL_CONFIGS[family].parse({**SIZES, **layers, "position": "rotary"})
        found[family] = (build_text(config, shape).eval(), src)  # type: ignore[arg-type, assignment]
    found["captioner"] = (pictures.eval(), torch.randn(BATCH, 1, 28, 28))
    return found


@torch.inference_mode()
def _written(
    read: Callable[[Writes, Tensor], NextLogits], model: Writes, src: Tensor, length: int = LENGTH
) -> Tensor:
    next_logits = read(model, src)
    ids = torch.zeros(len(src), 0, dtype=torch.int64)
    for _ in range(length):
        logits = next_logits(ids)
        logits[:, list(NEVER)] = -torch.inf
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
    return ids


def _again(model: Writes, src: Tensor) -> NextLogits:
    """Return a writer that reads the source once and the whole text for each token."""
    if isinstance(model, DecoderOnly):
        return lambda ids, parents=None: model(src, _shifted(ids))[:, -1].float()
    encoded = model.encode(src)  # type: ignore[operator]
    return lambda ids, parents=None: model.decode(_shifted(ids), *encoded)[:, -1].float()


def _shifted(ids: Tensor) -> Tensor:
    return torch.cat([ids.new_full((len(ids), 1), BOS), ids], 1)

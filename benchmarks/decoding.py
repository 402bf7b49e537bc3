"""A text written with keys and values kept, against the whole text read again for each token.

The texts are the same (checked first). The end is never written, so that all have one length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.goals import said
from benchmarks.paired import Spread, measure, ratio
from benchmarks.report import Figure, Table
from tfm_core.config import MODEL_CONFIGS, CaptionerConfig
from tfm_core.data.vocabulary import BOS, EOS
from tfm_core.decoding import reading
from tfm_core.decoding.reading import NextLogits, Writes
from tfm_core.models.build import CaptionShape, TextShape, build_captioner, build_text

BATCH, LENGTH, WORDS, SOURCE = 64, 128, 64, 32
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128}


def tables(*, quick: bool) -> Iterator[Table]:
    """Check that the texts are the same, then write them both ways in turn."""
    rows, reached = [], {}
    with torch.no_grad():
        for name, (model, src) in _models().items():
            kept, again = (
                partial(_written, reading, model, src),
                partial(_written, _again, model, src),
            )
            if not torch.equal(kept(), again()):
                raise AssertionError(f"{name}: the two ways do not write the same")
            seconds = measure(
                {"kept": kept, "again": again}, rounds=1 if quick else 4, warmup=0 if quick else 1
            )
            gain = ratio(seconds["again"], seconds["kept"])
            spent = {
                way: Spread.of([1e6 * value / (BATCH * LENGTH) for value in values]).show(digits=0)
                for way, values in seconds.items()
            }
            goal = f"decoding: {name}"
            reached[goal] = Figure(gain.median)
            rows.append([name, *spent.values(), gain.show("x", 1), said(goal, gain.median)])
    yield Table(
        f"{BATCH} texts of {LENGTH} tokens, written greedily",
        ["", "keys kept, CPU-microseconds a token", "read again", "faster", "target"],
        rows,
        [f"Two layers, d_model {SIZES['d_model']}; sources of {SOURCE} tokens; fp32, equal texts."],
        reached,
    )


def _models() -> dict[str, tuple[Writes, Tensor]]:
    torch.manual_seed(0)
    src = torch.randint(4, WORDS, (BATCH, SOURCE))
    shape = TextShape(WORDS, WORDS)
    pictures = build_captioner(
        CaptionerConfig.parse({**SIZES, "patch_size": 7}), CaptionShape(28, 1, WORDS, LENGTH + 1)
    )
    text = {
        "encoder-decoder": {"n_encoder_layers": 2, "n_decoder_layers": 2},
        "decoder-only": {"n_layers": 2},
    }
    found: dict[str, tuple[Writes, Tensor]] = {}
    for family, layers in text.items():
        config = MODEL_CONFIGS[family].parse({**SIZES, **layers, "position": "rotary"})
        found[family] = (build_text(config, shape).eval(), src)  # type: ignore[arg-type, assignment]
    found["captioner"] = (pictures.eval(), torch.randn(BATCH, 1, 28, 28))
    return found


def _written(read: Callable[[Writes, Tensor], NextLogits], model: Writes, src: Tensor) -> Tensor:
    next_logits = read(model, src)
    ids = torch.zeros(BATCH, 0, dtype=torch.int64)
    for _ in range(LENGTH):
        logits = next_logits(ids)
        logits[:, EOS] = -torch.inf
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
    return ids


def _again(model: Writes, src: Tensor) -> NextLogits:
    """Return what reads the source once and the text anew for each token."""
    from tfm_core.models.text import DecoderOnly

    if isinstance(model, DecoderOnly):
        return lambda ids, parents=None: model(src, _shifted(ids))[:, -1].float()
    encoded = model.encode(src)  # type: ignore[operator]
    return lambda ids, parents=None: model.decode(_shifted(ids), *encoded)[:, -1].float()


def _shifted(ids: Tensor) -> Tensor:
    return torch.cat([ids.new_full((len(ids), 1), BOS), ids], 1)

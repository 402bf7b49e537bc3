"""What it costs a loop of one's own to be recorded: its step beside the same step alone.

One model of plain PyTorch takes blocks of six steps: alone, recorded, alone once more, and back.
A recorded step reports loss and accuracy, which writes events and a status; one alone only reads
them. The third is the benchmark's own error, of steps that do not differ. Steps are timed in
CPU-seconds of the whole process, the writing thread included. Snapshots are not timed with them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.timing import measure, milliseconds, prepare
from tfm_core.looking import look
from tfm_core.runs.store import RunStore

GOAL = "recorded loop"
_BLOCKS, _RESAMPLES = 500, 2000
_BATCH, _LENGTH, _WORDS = 32, 32, 64


class _Writer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(_WORDS, 64), nn.Linear(64, _WORDS)
        layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        logits: torch.Tensor = self.head(self.body(self.embed(ids), mask, is_causal=True))
        return logits


def _step(
    report: Callable[[torch.Tensor, torch.Tensor], object],
) -> tuple[nn.Module, Callable[[], None]]:
    torch.manual_seed(0)
    model, ids = _Writer(), torch.randint(0, _WORDS, (_BATCH, _LENGTH))
    learner = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        logits = model(ids)[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        accuracy = (logits.argmax(-1) == ids[:, 1:]).float().mean()
        learner.zero_grad(set_to_none=True)
        loss.backward()
        learner.step()
        report(loss.detach(), accuracy)

    return model, step


def _read(loss: torch.Tensor, accuracy: torch.Tensor) -> None:
    loss.item()
    accuracy.item()


def _extra(
    blocks: npt.NDArray[np.float64], contender: int
) -> tuple[float, float, tuple[float, float]]:
    """Return mean, median, and the 95 % interval of the mean, in % of a step alone.

    blocks: CPU-seconds (blocks, 6) of steps 0 1 2 2 1 0; contender: which of these is compared
    with 0. The interval is a bootstrap over blocks.
    """
    alone = (blocks[:, 0] + blocks[:, 5]) / 2
    other = (blocks[:, contender] + blocks[:, 5 - contender]) / 2
    share = 100 * (other - alone) / np.median(alone)
    chosen = np.random.default_rng(0).integers(0, len(share), (_RESAMPLES, len(share)))
    low, high = np.quantile(share[chosen].mean(1), (0.025, 0.975))
    return float(share.mean()), float(np.median(share)), (float(low), float(high))


def tables(*, quick: bool = False) -> list[Table]:
    """Return the table of the cost of being recorded."""
    prepare()
    n_blocks = 20 if quick else _BLOCKS
    reports: list[Callable[[torch.Tensor, torch.Tensor], object]] = [_read]
    model, step = _step(lambda loss, accuracy: reports[0](loss, accuracy))
    ids = torch.randint(0, _WORDS, (4, _LENGTH))
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        watched = look.training(
            model, probe=ids, every=10**9, store=RunStore(Path(folder), recorded=None)
        )
        first = time.perf_counter() - begin

        def record(loss: torch.Tensor, accuracy: torch.Tensor) -> None:
            watched.step(loss, accuracy=accuracy)

        def timed(report: Callable[[torch.Tensor, torch.Tensor], object]) -> float:
            reports[0] = report
            start = time.process_time()
            step()
            return time.process_time() - start

        order = (_read, record, _read, _read, record, _read)
        for report in 3 * order:
            timed(report)
        blocks = np.array([[timed(report) for report in order] for _block in range(n_blocks)])
        loss, accuracy = torch.tensor(1.0), torch.tensor(0.5)
        (reporting,) = measure(
            {"reporting": lambda: watched.step(loss, accuracy=accuracy)}, rounds=5, repeats=500
        ).values()
        begin = time.perf_counter()
        watched.close()
        last = time.perf_counter() - begin
    alone = 1000 * float(np.median(blocks[:, [0, 5]]))
    rows = [["a step alone, median, ms", f"{alone:.2f}", "–"]]
    means = {}
    for number, words in ((1, "recorded, beyond it, %"), (2, "alone once more, beyond it, %")):
        mean, median, (low, high) = _extra(blocks, number)
        means[number] = mean
        goal = goal_cell(GOAL, mean) if number == 1 else "–"
        rows.append([words, f"{mean:.2f} ({low:.2f} to {high:.2f}; median {median:.2f})", goal])
    rows += [
        ["reporting alone, ms", milliseconds(reporting).show(digits=3), "–"],
        ["beginning with a snapshot, ms", f"{1000 * first:.0f}", "–"],
        ["ending with a snapshot, ms", f"{1000 * last:.0f}", "–"],
    ]
    title = f"A loop of one's own, {n_blocks} blocks of six steps, in CPU-seconds, mean (95 %)"
    return [Table(title, ["what", "measured", "target"], rows, reached={GOAL: Figure(means[1])})]

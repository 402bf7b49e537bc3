"""What it costs a loop of one's own to be recorded: its step beside the same step alone.

One model of plain PyTorch takes turns of 25 steps that report loss and accuracy, which writes
events and a status, and of 25 that only read them: of two equal models one is up to 3 % faster by
where it lies in memory. Snapshots, at the start and the end, are not timed with it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.timing import TimeRange, measure, milliseconds, prepare
from tfm_core.looking import look
from tfm_core.runs.store import RunStore

GOAL = "recorded loop"
_TURN, _ROUNDS = 25, 40
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


def tables(*, quick: bool = False) -> list[Table]:
    """Return the table of the cost of being recorded."""
    prepare()
    rounds = 6 if quick else _ROUNDS
    reports: list[Callable[[torch.Tensor, torch.Tensor], object]] = [_read]
    model, step = _step(lambda loss, accuracy: reports[0](loss, accuracy))
    ids = torch.randint(0, _WORDS, (4, _LENGTH))
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        watched = look.training(
            model, probe=ids, every=10**9, store=RunStore(Path(folder), recorded=None)
        )
        first = time.perf_counter() - begin

        def recorded() -> None:
            reports[0] = lambda loss, accuracy: watched.step(loss, accuracy=accuracy)
            step()

        def alone() -> None:
            reports[0] = _read
            step()

        contenders = {"recorded": recorded, "alone": alone}
        taken = measure(contenders, rounds=rounds, repeats=_TURN)
        loss, accuracy = torch.tensor(1.0), torch.tensor(0.5)
        (reporting,) = measure(
            {"reporting": lambda: watched.step(loss, accuracy=accuracy)}, rounds=5, repeats=500
        ).values()
        begin = time.perf_counter()
        watched.close()
        last = time.perf_counter() - begin
    extra = [100 * (one / other - 1) for one, other in zip(*taken.values(), strict=True)]
    spread, figure = TimeRange.of(extra), 100 * (sum(taken["recorded"]) / sum(taken["alone"]) - 1)
    rows = [
        ["a step alone, ms", milliseconds(taken["alone"]).show(digits=2), "–"],
        ["a step that is recorded, ms", milliseconds(taken["recorded"]).show(digits=2), "–"],
        ["beyond it, %", f"{figure:.2f} (turns: {spread.show(digits=2)})", goal_cell(GOAL, figure)],
        ["reporting alone, ms", milliseconds(reporting).show(digits=3), "–"],
        ["beginning with a snapshot, ms", f"{1000 * first:.0f}", "–"],
        ["ending with a snapshot, ms", f"{1000 * last:.0f}", "–"],
    ]
    title = f"A loop of one's own, {rounds} turns of {_TURN} steps, in CPU-seconds"
    return [Table(title, ["what", "measured", "target"], rows, reached={GOAL: Figure(figure)})]

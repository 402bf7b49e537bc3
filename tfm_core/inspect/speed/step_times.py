"""How long a training step takes as sequences grow: token by token, or all at once.

A recurrent decoder makes n steps in sequence; a Transformer a few large products, with scores that
grow quadratically (Vaswani et al. 2017, Table 1). One thread. torch is imported late.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pandas as pd

from tfm_core.choices.config import ModelConfig
from tfm_core.runs.store import RECORDED

if TYPE_CHECKING:
    from torch import nn

LENGTHS = (8, 16, 32, 64, 128)
BATCH = 16
WORDS = 48
"""Words of each vocabulary, about those of the small tasks."""
MIN_SECONDS = 0.1
"""Each model is measured for at least this long at each length, and at least REPEATS times."""
REPEATS = 3
RECORDED_TIMES = RECORDED.parent / "step-times.json"


def recorded_times() -> tuple[pd.DataFrame, str, str]:
    """Return the step times that come with the app, the PyTorch, and the day.

    Seconds by length (rows) and model (columns).
    """
    kept = json.loads(RECORDED_TIMES.read_text(encoding="utf-8"))
    return pd.DataFrame(kept["seconds"], index=kept["lengths"]), kept["torch"], kept["day"]


def step_time(config: ModelConfig, length: int, *, batch: int = BATCH) -> float:
    """Return the seconds of the fastest forward and backward pass of ``length`` tokens.

    Thread time, so that waiting does not count; the fastest, because the rest is disturbance.
    """
    import torch

    from tfm_core.models.build import TextShape, build_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_model(config, TextShape(WORDS, WORDS))
        src, tgt = (torch.randint(4, WORDS, (batch, length)) for _ in range(2))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _pass(model, src, tgt)  # the first one pays for what is new
        times: list[float] = []
        while len(times) < REPEATS or sum(times) < MIN_SECONDS:
            begin = time.thread_time()
            _pass(model, src, tgt)
            times.append(time.thread_time() - begin)
    finally:
        torch.set_num_threads(threads)
    return min(times)


def _pass(model: nn.Module, *inputs: object) -> None:
    loss = model(*inputs).logsumexp(-1).mean()
    model.zero_grad()
    loss.backward()

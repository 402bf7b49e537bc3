"""Trains experiments by the processes that torchrun started, and by the first alone; prints both.

``python -m torch.distributed.run --standalone --nproc-per-node 2 -m tests.training.shared``
"""

import json
import sys
from dataclasses import astuple
from typing import Any

from tests.training.test_loop import EXPERIMENTS, IDS, experiment
from tfm_core.config import Experiment
from tfm_core.training.events import Measured, Step
from tfm_core.training.loop import build, train
from tfm_core.training.share import Replica, process_group

CHOSEN = dict(zip(IDS, EXPERIMENTS, strict=True)) | {
    # each process balances its own part of a batch, which is not quite the whole
    "experts": experiment("decoder-only", "copy", model={"n_experts": 3, "balance_weight": 0.0}),
    "muon": experiment(training={"optimizer": "muon", "ema_decay": 0.9}),
    "fp16": experiment(training={"precision": "fp16"}),
    "grammar": experiment("decoder-only", "grammar"),
    "checkpointing": experiment(training={"checkpointing": True}),
    "halved": experiment(training={"batch_size": 6, "batch_warmup": 0.7}),
    "odd": experiment(training={"batch_size": 7, "clip_norm": 0.05}),
}


def curve(chosen: Experiment, share: Replica | None) -> list[Any]:
    """Return losses, accuracies and gradient norms, and what was measured."""
    chosen = chosen.replace(model=chosen.model.replace(dropout=0.0).model_dump())
    trainer = build(chosen)
    if share is not None:
        trainer.join(share)
    events = list(train(trainer))
    steps = [(e.loss, e.accuracy, e.grad_norm) for e in events if isinstance(e, Step)]
    measured = [astuple(e)[2:5] for e in events if isinstance(e, Measured)]
    measured = [[one for one in found if one is not None] for found in measured]
    return [steps, measured]


def main() -> None:
    """Print ``{name: [together, alone]}``.

    Threads get Python's lock only where it is let go: what needs it at the end waits for certain.
    """
    sys.setswitchinterval(1000)
    found = {}
    with process_group() as share:
        for name, chosen in CHOSEN.items():
            together = curve(chosen, share)
            if share.is_first:
                found[name] = [together, curve(chosen, None)]
        if share.is_first:
            json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()

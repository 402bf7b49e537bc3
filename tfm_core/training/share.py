"""One training by several processes, each of which learns from its part of every batch.

All sample the same batches, average the gradients of their parts (PyTorch's
DistributedDataParallel) and make the same update: the curve is that of one process, except for
rounding and for dropout, which each process draws for its part. Parts may hold unequal numbers of
tokens, so means are weighted by their counts. ``torchrun`` starts the processes; the first one
alone keeps the run's folder and decides when to pause and to stop.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tfm_core.sentences import StudentError

_PATIENCE = timedelta(days=30)  # a run may be paused for as long
_FIRST = 0


@contextmanager
def process_group() -> Iterator[Replica]:
    """Join the other processes that torchrun has started, until the end of the block."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=_PATIENCE)
    share = Replica(dist.get_rank(), dist.get_world_size())
    try:
        yield share
    finally:
        share.end()
        dist.destroy_process_group()


@dataclass(eq=False, slots=True)
class Replica:
    """The part of one process in a training. rank: its number, from 0; size: how many there are.

    ddp_model: the model whose gradients are averaged, once the training has begun.
    """

    rank: int
    size: int
    ddp_model: nn.Module = field(default_factory=nn.Identity)

    @property
    def is_first(self) -> bool:
        """Whether this is the process that keeps the run's folder."""
        return self.rank == _FIRST

    def device(self, name: str) -> str:
        """Return the device of this process where the first one has that of a name.

        Each has its own CUDA GPU, in the order in which torchrun counts them on a machine.
        """
        kind = name.partition(":")[0]
        if kind == "mps":
            raise StudentError("Processes cannot share mps; use cpu.")
        return f"cuda:{os.environ.get('LOCAL_RANK', self.rank)}" if kind == "cuda" else name

    def wrap(self, model: nn.Module, device: torch.device, *, has_unused: bool) -> None:
        """Average the gradients of a model from now on; the first process's weights are used.

        has_unused: some parameters do not affect the loss.
        """
        self.ddp_model = DistributedDataParallel(
            model,
            device_ids=[device] if device.type == "cuda" else None,
            forward_sync_buffers=False,  # tables of positions: each fills its own
            find_unused_parameters=has_unused,
        )

    def end(self) -> None:
        """Release the model whose gradients are averaged, before the processes end.

        Released last, it would wait for a thread of gloo while holding Python's lock, which that
        thread needs for its last message: a deadlock.
        """
        self.ddp_model = nn.Identity()
        gc.collect()  # it refers to itself

    def part(self, n: int) -> slice:
        """Return which of ``n`` examples are this process's."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def weight_loss(self, loss: Tensor, n: Tensor | int) -> Tensor:
        """Return what to differentiate where ``loss`` is a mean over ``n`` of this part.

        The mean of it over the processes, which their gradients are, is the mean over all.
        """
        count = torch.as_tensor(n, dtype=torch.float32, device=loss.device)
        total = count.clone()
        dist.all_reduce(total)
        return loss * (count * self.size / total)

    def reduce_metrics(
        self, reported: Tensor, n_correct: Tensor, n_tokens: Tensor | int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mean loss over the tokens of all parts, and the counts of all."""
        count = torch.as_tensor(n_tokens, dtype=torch.float32, device=reported.device)
        sums = torch.stack([reported.detach().float() * count, n_correct.float(), count])
        dist.all_reduce(sums)
        loss, correct, total = sums.unbind()
        return loss / total.clamp(min=1), correct, total

    def broadcast(self, value: Any) -> Any:
        """Return the value of the first process, once it has sent it: numbers, words or None."""
        values = [value]
        dist.broadcast_object_list(values, _FIRST, device=torch.device("cpu"))
        return values[0]

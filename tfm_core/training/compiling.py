"""Training with ``torch.compile``: one program made of a model's many operations.

Ansel et al. 2024, "PyTorch 2". The program is made before the first step, for batches of one size:
texts are padded to the longest of all. On NVIDIA GPUs its kernels are launched as one CUDA graph.
Only training runs it. It shares its parameters with the model, which is validated, probed and saved
as usual; so a training may be resumed with it or without it.

On one CPU core it gains next to nothing: steps of the presets ``translate`` and
``vit-digits`` were 1.01 and 1.03 times as fast, after 38 and 24 s of compiling, or 1 s where
PyTorch's cache had it. On a GPU it has not been measured.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import cast

import torch
from torch import nn

from tfm_core.sentences import N_, Paragraph
from tfm_core.training.events import Compiled
from tfm_core.training.trainer import Trainer

BACKEND = "inductor"
_N_PASSES = {"cuda": 3}
"""Passes until all is made: on CUDA the first compiles, the second records, the third replays."""


def compile_model(trainer: Trainer) -> Compiled:
    """Compile the model of a trainer; return how long that took, or why it is not done.

    The next batch is passed forwards and backwards for it, and changes nothing.
    """
    why = _why_not(trainer)
    if why is not None:
        return Compiled(trainer.step, reason=why)
    begin = trainer.clock()
    trainer.pad_to_longest(True)
    model = trainer.model.train()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        # lets tables of positions grow, which would have to be traced again once they have
        trainer.objective.learn(model, trainer.batch(trainer.step + 1))
    mode = "reduce-overhead" if trainer.device.type == "cuda" else None
    try:
        with torch.random.fork_rng(devices=[]):
            compiled = cast(
                nn.Module, torch.compile(model, backend=BACKEND, mode=mode, dynamic=False)
            )
            for _ in range(_N_PASSES.get(trainer.device.type, 1)):
                begin_step()
                try:
                    with trainer.autocast():
                        loss = trainer.objective.learn(
                            compiled, trainer.batch(trainer.step + 1)
                        ).loss
                    loss.backward()  # type: ignore[no-untyped-call]
                    float(loss.detach())
                finally:
                    trainer.optimizer.zero_grad(set_to_none=True)
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        trainer.pad_to_longest(False)
        error = getattr(error, "inner_exception", error)  # what the compiler says, unwrapped
        words = str(error).strip().splitlines()
        return Compiled(
            trainer.step,
            reason=N_(
                "torch.compile is off: it failed on {device} ({name}: {words}).",
                device=str(trainer.device),
                name=type(error).__name__,
                words=words[0] if words else "",
            ),
        )
    trainer.compiled = compiled
    return Compiled(trainer.step, seconds=trainer.clock() - begin)


def begin_step() -> None:
    """Say that what CUDA graphs made in the step before may be overwritten."""
    torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]


def _why_not(trainer: Trainer) -> str | None:
    if not trainer.experiment.model.has_blocks:
        return N_("torch.compile is off: a recurrent cell is already a single kernel.")
    if getattr(trainer.experiment.model, "n_experts", 0) > 1:
        return N_("torch.compile is off: the number of tokens per expert changes every step.")
    kind = trainer.device.type
    if kind not in {"cpu", "cuda"}:
        return N_(
            "torch.compile is off: it needs a CPU or an NVIDIA GPU, not {device}.",
            device=str(trainer.device),
        )
    return why_no_compiler(kind)


_COMPILERS = ("c++", "g++", "clang++", "cl")


def why_no_compiler(device: str) -> str | None:
    """Return why ``torch.compile`` cannot generate code here, or None.

    It needs a C++ compiler, and on a GPU Triton too.
    """
    chosen = os.environ.get("CXX")
    names = (chosen,) if chosen else _COMPILERS
    if not any(shutil.which(name) for name in names):
        return Paragraph("training/no-compiler")
    if device.startswith("cuda") and find_spec("triton") is None:
        return N_("torch.compile is off: on a GPU it needs Triton, which isn't installed.")
    return None

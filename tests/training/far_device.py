"""A device far away, without one: what a step asks of a GPU, counted on the CPU.

Its tensors lie on PyTorch's ``meta`` device, which knows shapes and computes no numbers. So whoever
wants a number has to ask here for it, and on a GPU would wait until all is computed that was asked
for. Counted are these waits, what is sent there, and the kernels that are launched. What takes how
long is not known here: that needs a GPU.
"""

import sys
import traceback
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tfm_core.choices.config import Experiment
from tfm_core.training import devices, loop

DEVICE = torch.device("meta")
NUMBER = 3  # what every number that is read turns out to be: a length, a loss
_aten = torch.ops.aten


class FarDevice(TorchDispatchMode):
    """Counts what is asked of the device while it is in force, by the line that asks."""

    trainer: loop.Trainer

    def __init__(self) -> None:
        super().__init__()
        self.forget()

    def forget(self) -> None:
        """Count from 0 again."""
        self.waits, self.sent, self.launches = Counter[str](), Counter[str](), Counter[str]()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        kwargs = kwargs or {}
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        there, target = [one for one in tensors if one.is_meta], kwargs.get("device")
        is_asked = bool(there) or (target is not None and torch.device(target) == DEVICE)
        if not is_asked:
            return func(*args, **kwargs)
        if func is _aten._local_scalar_dense.default:
            self.waits[_who()] += 1
            return float(NUMBER) if there[0].is_floating_point() else NUMBER
        if func is _aten._to_copy.default and target is not None and torch.device(target) != DEVICE:
            self.waits[_who()] += 1
            dtype = kwargs.get("dtype") or args[0].dtype
            return torch.full(args[0].shape, NUMBER, dtype=dtype, device="cpu")
        if (func is _aten._to_copy.default and not there) or (
            func is _aten.copy_.default and not args[1].is_meta
        ):
            self.sent[_who()] += 1
            if not (kwargs.get("non_blocking") or args[2:] == (True,)):
                self.waits[_who()] += 1
        elif not func.is_view and func is not _aten._unsafe_view.default:
            self.launches[func.name()] += 1
        if func is _aten._fused_sgd_.default:  # has no shapes to work out, and says so
            return None
        return func(*args, **kwargs)


def step_of(experiment: Experiment, monkeypatch) -> FarDevice:
    """Train on the far device; return what the third step asked of it."""
    for kernels in ("fused", "foreach"):
        name = f"_get_{kernels}_kernels_supported_devices"
        for module in [one for one in list(sys.modules.values()) if name in vars(one)]:
            monkeypatch.setattr(module, name, lambda: [DEVICE.type])
    monkeypatch.setattr(devices, "resolve", lambda _name: DEVICE)
    with FarDevice() as device:
        trainer = device.trainer = loop.build(experiment)
        steps = loop.train(trainer)
        for step in range(3):
            if step == 2:
                device.forget()
            loop.update(trainer)
            trainer.step += 1
        steps.close()
    return device


def _who() -> str:
    """Return the line of ours that asked."""
    for frame in reversed(traceback.extract_stack()):
        if "tfm_core" in frame.filename:
            return f"{frame.filename.rpartition('tfm_core')[2]}:{frame.lineno} {frame.line}"
    return "?"

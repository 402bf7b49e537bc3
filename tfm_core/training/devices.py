"""Devices: which are available, why others are not, and their memory in use.

torch is imported inside the functions, so that naming a device costs nothing.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from tfm_core.sentences import N_, StudentError, counted

if TYPE_CHECKING:
    import torch

_WORTH_IT = 0.9  # more threads must take at most this share of the time of fewer


@dataclass(frozen=True, slots=True)
class Device:
    """One place to compute. Memory in bytes, None where unknown; ``reason``: why unavailable.

    thread_choices: how many CPU threads may be asked for, CPU only. supports_bf16: bf16 is as fast
    as fp32 or faster here.
    """

    name: str
    label: str
    available: bool = True
    reason: str | None = None
    memory_free: int | None = None
    memory_total: int | None = None
    supports_bf16: bool = False
    thread_choices: tuple[int, ...] = ()


def devices() -> list[Device]:
    """Return every device of this machine, the usable ones first."""
    devices = [_cpu(), *_cuda(), _mps()]
    return sorted(devices, key=lambda device: not device.available)


def resolve(name: str) -> torch.device:
    """Return the torch device of a name. Raises ValueError, in a sentence, where there is none."""
    import torch

    kind, _, number = name.partition(":")
    if kind not in {"cpu", "cuda", "mps"} or (
        number and not (number.isascii() and number.isdigit())
    ):
        raise StudentError(
            "Unknown device {name!r}; use cpu, cuda:0 (1, 2, ...) or mps.", name=name
        )
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise StudentError(
                "{name} is not available: {why_no_cuda} Use cpu.",
                name=name,
                why_no_cuda=_why_no_cuda(),
            )
        if int(number or 0) >= count:
            available = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
            raise StudentError(
                "{name} is not available; this machine has {there}.", name=name, there=available
            )
        return torch.device("cuda", int(number or 0))
    if kind == "mps" and not torch.backends.mps.is_available():
        raise StudentError("mps is not available: {why_no_mps} Use cpu.", why_no_mps=_why_no_mps())
    return torch.device(kind)


def memory_used(device: torch.device | str) -> int:
    """Return bytes in use: of this process on the CPU, of its tensors on an accelerator."""
    import torch

    kind = torch.device(device).type
    if kind == "cuda":
        return int(torch.cuda.memory_allocated(device))
    if kind == "mps":
        return int(torch.mps.current_allocated_memory())
    return int(psutil.Process().memory_info().rss)


def memory_free(device: torch.device) -> int | None:
    """Return bytes that are free on an accelerator just now; None where unknown."""
    import torch

    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return _mps_free()
    return None


def thread_choices() -> tuple[int, ...]:
    """Return the numbers of threads worth offering: 1, 2, 4, ... and all cores of this process."""
    cores = usable_cores()
    return tuple(sorted({1, cores, *(2**i for i in range(1, cores.bit_length()) if 2**i < cores)}))


def usable_cores() -> int:
    """Return the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def measure_threads(
    choices: tuple[int, ...] | None = None, *, repeats: int = 20
) -> dict[int, float]:
    """Return seconds per step of a small model for each number of threads, measured just now.

    Takes a fraction of a second, and holds for as long as the machine is as busy as now.
    """
    import torch

    before = torch.get_num_threads()
    layer = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64), torch.nn.LayerNorm(64)
    )
    batch = torch.zeros(64 * 16, 64)
    took: dict[int, float] = {}
    try:
        for count in choices or thread_choices():
            torch.set_num_threads(count)
            layer(batch).sum().backward()  # starts the threads
            begin = time.perf_counter()
            for _ in range(repeats):
                layer(batch).sum().backward()
            took[count] = (time.perf_counter() - begin) / repeats
    finally:
        torch.set_num_threads(before)
    return took


def fastest_threads(took: dict[int, float]) -> int:
    """Return the number of threads to use, given what ``measure_threads`` found.

    More threads must gain a tenth: what is a tie now is a loss once the machine gets busy.
    """
    best = min(took)
    for count in sorted(took):
        if took[count] < _WORTH_IT * took[best]:
            best = count
    return best


def _cpu() -> Device:
    import torch

    memory = psutil.virtual_memory()
    has_bf16 = any(
        bool(getattr(torch.cpu, name, bool)())
        for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )
    cores = usable_cores()
    return Device(
        "cpu",
        counted("CPU, {n} core", "CPU, {n} cores", cores),
        memory_free=int(memory.available),
        memory_total=int(memory.total),
        supports_bf16=has_bf16,
        thread_choices=thread_choices(),
    )


def _cuda() -> list[Device]:
    import torch

    if not torch.cuda.is_available():
        return [Device("cuda:0", N_("NVIDIA GPU"), available=False, reason=_why_no_cuda())]
    devices = []
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        label = f"{facts.name} (GPU {index})"
        try:
            free, total = torch.cuda.mem_get_info(index)
        except RuntimeError as error:
            reason = N_("The driver reports: {answer}", answer=str(error).splitlines()[0])
            devices.append(Device(f"cuda:{index}", label, available=False, reason=reason))
            continue
        bf16 = facts.major >= 8
        devices.append(
            Device(f"cuda:{index}", label, True, None, int(free), int(total), supports_bf16=bf16)
        )
    return devices


def _mps() -> Device:
    import torch

    if not torch.backends.mps.is_available():
        return Device("mps", N_("Apple GPU"), available=False, reason=_why_no_mps())
    total = int(torch.mps.recommended_max_memory())
    return Device("mps", N_("Apple GPU"), True, None, _mps_free(), total)


def _mps_free() -> int:
    import torch

    return int(torch.mps.recommended_max_memory()) - int(torch.mps.driver_allocated_memory())


def _why_no_cuda() -> str:
    import torch

    if platform.system() == "Darwin":
        return N_("Macs have no NVIDIA GPU.")
    if torch.version.cuda is None:
        return N_("This PyTorch was installed without CUDA support.")
    return N_("PyTorch finds no NVIDIA GPU, or no driver for it.")


def _why_no_mps() -> str:
    import torch

    if platform.system() != "Darwin":
        return N_("It needs a Mac.")
    if not torch.backends.mps.is_built():
        return N_("This PyTorch was installed without it.")
    return N_("It needs Apple silicon and macOS 14 or newer.")

"""What a training was made with: the app, PyTorch, the kind of device and of processor.

If all are equal, the same experiment gives the same curve; otherwise sums are rounded differently,
and training amplifies the difference.
"""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from tfm_core import __version__
from tfm_core.sentences import N_, Paragraph, listed

PACKAGES = ("torch", "numpy", "safetensors", "pandas", "plotly")
"""The packages whose versions affect the numbers."""
_FORM = re.compile(r"([\w.]{1,24})-([\w.]{1,24})-(cpu\d{0,3}|cuda|mps)-(\w{1,16})", re.ASCII)
_SAME = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class MadeWith:
    """Versions and hardware.

    device: ``cpu``, ``cpu4`` with four threads, ``cuda`` or ``mps``; machine: ``x86_64``, ….
    """

    app: str
    torch: str
    device: str
    machine: str

    def __str__(self) -> str:
        """Return the form for links: ``0.1.0-2.13.0-cpu-x86_64``."""
        return f"{self.app}-{self.torch}-{self.device}-{self.machine}"


def versions(*more: str) -> dict[str, str]:
    """Return the versions here: of the app, Python, ``PACKAGES`` and others, where installed."""
    installed = {"tfm_core": __version__, "python": platform.python_version()}
    for name in (*PACKAGES, *more):
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def made_here(device: str = "cpu", threads: int = 1) -> MadeWith:
    """Return what a training on a device of this machine is made with, without loading torch."""
    kind = device.partition(":")[0]
    if kind == "cpu" and threads > 1:
        kind = f"cpu{threads}"
    return MadeWith(__version__, _torch(), kind, _machine())


def read(text: str) -> MadeWith | None:
    """Parse the text of a link; None if it is malformed."""
    match = _FORM.fullmatch(text)
    return None if match is None else MadeWith(*match.groups())


def why_curves_differ(made: MadeWith, ours: MadeWith) -> str | None:
    """Return why the curve of an experiment may differ here; None if it does not."""
    if made == ours:
        return None
    parts = []
    if made.app != ours.app:
        parts.append(N_("app version {there} (here {here})", there=made.app, here=ours.app))
    if made.torch != ours.torch:
        parts.append(N_("PyTorch {there} (here {here})", there=made.torch, here=ours.torch))
    if made.device != ours.device:
        device, own_device = _device(made.device), _device(ours.device)
        parts.append(N_("{there} (here {here})", there=device, here=own_device))
    if made.machine != ours.machine:
        parts.append(N_("{there} processor (here {here})", there=made.machine, here=ours.machine))
    if made.app != ours.app:
        return Paragraph("made-with/app-differs", parts=listed(parts))
    return Paragraph("made-with/machine-differs", parts=listed(parts))


def _device(kind: str) -> str:
    if kind.startswith("cpu") and kind != "cpu":
        return N_("{n} CPU threads", n=kind.removeprefix("cpu"))
    return {"cpu": N_("the CPU"), "cuda": N_("a CUDA GPU"), "mps": "MPS"}[kind]


@lru_cache(maxsize=1)
def _torch() -> str:
    try:
        return version("torch").partition("+")[0]
    except PackageNotFoundError:  # it may lie on the path without being installed
        return "0"


def _machine() -> str:
    name = re.sub(r"\W", "", platform.machine().lower(), flags=re.ASCII)[:16]
    return _SAME.get(name, name) or "unknown"

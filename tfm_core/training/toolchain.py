"""What ``torch.compile`` needs besides PyTorch: a C++ compiler, and on a GPU Triton too."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

from tfm_core.sentences import N_, Paragraph

_COMPILERS = ("c++", "g++", "clang++", "cl")


def why_no_compiler(device: str) -> str | None:
    """Return why ``torch.compile`` cannot generate code here, or None where it can."""
    chosen = os.environ.get("CXX")
    names = (chosen,) if chosen else _COMPILERS
    if not any(shutil.which(name) for name in names):
        return Paragraph("training/no-compiler")
    if device.startswith("cuda") and find_spec("triton") is None:
        return N_("torch.compile is off: on a GPU it needs Triton, which is not installed.")
    return None

"""What ``torch.compile`` needs besides PyTorch: a C++ compiler, and on a GPU Triton too."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

from tfm_core.sentences import N_

_COMPILERS = ("c++", "g++", "clang++", "cl")


def why_no_compiler(device: str) -> str | None:
    """Return why ``torch.compile`` cannot generate code here, or None where it can."""
    chosen = os.environ.get("CXX")
    names = (chosen,) if chosen else _COMPILERS
    if not any(shutil.which(name) for name in names):
        return N_(
            "There is no C++ compiler on this machine, and torch.compile needs one; on "
            "Debian or Ubuntu apt-get install g++ brings it, on Windows Visual Studio's Build "
            "Tools, in whose prompt the app is then started.",
        )
    if device.startswith("cuda") and find_spec("triton") is None:
        return N_("On a GPU torch.compile needs Triton, which is not installed here.")
    return None

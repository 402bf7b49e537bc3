"""The machine: devices, packages beside what was asked for, and torchvision beside torch."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path

from packaging.requirements import Requirement

from tfm_core.doctor.finding import Finding, count
from tfm_core.sentences import in_bytes
from tfm_core.training.devices import devices

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements.txt"
"""It lies beside the package where it was checked out, and is not there where it was installed."""

CPU_BUILDS = "pip install torch torchvision --index-url https://download.pytorch.org/whl/cpu"


def check_devices() -> Finding:
    """Name the devices that can be trained on."""
    there = [device for device in devices() if device.available]
    names = [f"{one.name} ({one.label}{_free(one.memory_free)})" for one in there]
    return Finding("devices", "ok", f"{', '.join(names)}.")


def check_versions(requirements: Path = REQUIREMENTS) -> Finding:
    """Compare what is installed with what is asked for."""
    missing, others = [], []
    wanted = _wanted(requirements)
    for requirement in wanted:
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(str(requirement))
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            others.append(f"{requirement.name} {version}, not {requirement.specifier}")
    if missing:
        words = f"Not installed: {', '.join(missing)}."
        return Finding("versions", "problem", words, "Do: pip install -r requirements.txt")
    if others:
        words = f"Other releases than the app was made for: {'; '.join(others)}."
        return Finding("versions", "warning", words, "Do: pip install -r requirements.txt")
    words = f"Python {platform.python_version()} and {count(len(wanted), 'package')} as asked for."
    return Finding("versions", "ok", words)


def check_torchvision() -> Finding:
    """Say whether torchvision fits torch; PyPI's doesn't beside a CPU-only torch on Linux."""
    import torch

    try:
        from tfm_core.data.torchvision_import import MISSING, torchvision
    except (ImportError, OSError, RuntimeError) as error:
        words = f"torchvision cannot be imported beside torch {torch.__version__}: {error}."
        return Finding("torchvision", "problem", words, f"Do: {CPU_BUILDS}")
    both = f"torchvision {torchvision.__version__} and torch {torch.__version__}"
    if MISSING:
        words = f"{both} are built for different machines; what the app uses of them works."
    else:
        words = f"{both} fit."
    return Finding("torchvision", "ok", words)


def _wanted(requirements: Path) -> list[Requirement]:
    if requirements.is_file():
        lines = requirements.read_text(encoding="utf-8").splitlines()
    else:
        lines = importlib.metadata.requires("watch-a-transformer-learn") or []
    return [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]


def _free(n_bytes: int | None) -> str:
    return "" if n_bytes is None else f", {in_bytes(n_bytes)} free"

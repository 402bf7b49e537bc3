#!/usr/bin/env python3
"""sbatch, squeue and scancel as their manuals say, for one machine; not Slurm itself.

It runs what --wrap says by ``sh``, in --chdir, with the submitter's environment (--export=ALL) and
its output in --output ("%%" is "%"), lists states by --name, and ends a job by SIGTERM. While there
is a file ``down`` in its folder it answers like commands whose controller is gone; while there is
one called ``drained``, jobs stay PENDING, and while there is one called ``no-gpus``, it refuses
--gres.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "slurm"


def say(path: Path, **facts: object) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({**known(path), **facts}))
    beside.replace(path)


def known(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def jobs() -> list[Path]:
    return sorted(FOLDER.glob("*.json"))


def sbatch(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        print("slurm-fake 0")
        return
    parser = argparse.ArgumentParser(prog="sbatch", allow_abbrev=False)
    for name in ("--job-name", "--output", "--chdir", "--wrap"):
        parser.add_argument(name, required=True)
    parser.add_argument("--cpus-per-task", type=int, default=1)
    parser.add_argument("--export", default="ALL", choices=["ALL"])
    parser.add_argument("--gres")
    parser.add_argument("--time")
    parser.add_argument("--parsable", action="store_true")
    parser.add_argument("--no-requeue", action="store_true")
    said = parser.parse_args(arguments)
    if said.gres and (FOLDER / "no-gpus").exists():
        why = "Batch job submission failed: Requested node configuration is not available"
        print(f"sbatch: error: {why}", file=sys.stderr)
        sys.exit(1)
    number = len(jobs()) + 1
    path = FOLDER / f"{number:04d}.json"
    say(path, name=said.job_name, state="PENDING", **{k: v for k, v in vars(said).items()})
    daemon = [sys.executable, __file__, "slurmstepd", str(path)]
    nothing = subprocess.DEVNULL
    subprocess.Popen(daemon, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    print(number if said.parsable else f"Submitted batch job {number}")


def slurmstepd(arguments: list[str]) -> None:
    path = Path(arguments[0])
    while (FOLDER / "drained").exists():
        if known(path)["state"] == "CANCELLED" or not FOLDER.exists():
            return
        time.sleep(0.01)
    job = known(path)
    with open(job["output"].replace("%%", "%"), "ab") as log:
        script = subprocess.Popen(
            ["sh", "-c", job["wrap"]], cwd=job["chdir"], stdout=log, stderr=log
        )
        say(path, state="RUNNING", pid=script.pid)
        code = script.wait()
    if known(path)["state"] == "RUNNING":
        say(path, state="FAILED" if code else "COMPLETED")


def squeue(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="squeue", allow_abbrev=False)
    parser.add_argument("--noheader", action="store_true")
    parser.add_argument("--states")
    parser.add_argument("--format", default="%T", choices=["%T"])
    parser.add_argument("--name", default="")
    said = parser.parse_args(arguments)
    for path in jobs():
        job = known(path)
        is_shown = said.states == "all" or job["state"] in {"PENDING", "RUNNING"}
        if job["name"] in said.name.split(",") and is_shown:
            print(job["state"])


def scancel(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="scancel", allow_abbrev=False)
    parser.add_argument("--name", required=True)
    name = parser.parse_args(arguments).name
    for path in jobs():
        job = known(path)
        if job["name"] == name and job["state"] in {"PENDING", "RUNNING"}:
            say(path, state="CANCELLED")
            if "pid" in job:
                os.kill(job["pid"], signal.SIGTERM)


if __name__ == "__main__":
    called, *words = sys.argv[1:]
    if called != "slurmstepd" and (FOLDER / "down").exists():
        print("slurm_load_jobs error: Unable to contact slurm controller", file=sys.stderr)
        sys.exit(1)
    {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "slurmstepd": slurmstepd}[called](
        words
    )

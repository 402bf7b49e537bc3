#!/usr/bin/env python3
"""sbatch, squeue and scancel as their manuals say, for one machine; not Slurm itself.

The commands keep jobs as files in a folder, list states by --name, and end a job by SIGTERM. While
``machine()`` lasts, each job runs what its --wrap says, in --chdir, with the submitter's
environment (--export=ALL) and its output in --output ("%%" is "%"). While there is a file ``down``
in the folder the commands answer like those whose controller is gone; while there is one called
``drained``, jobs stay PENDING, and while there is one called ``no-gpus``, --gres is refused.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
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
    say(path, name=said.job_name, state="PENDING", environment={**os.environ}, **vars(said))
    print(number if said.parsable else f"Submitted batch job {number}")


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """Run jobs meanwhile, each as soon as it is there; cancel and await those that are left."""
    is_over, running = threading.Event(), dict[Path, threading.Thread]()

    def look() -> None:
        while not is_over.wait(0.01):
            for path in jobs() if not (FOLDER / "drained").exists() else ():
                if path not in running and known(path)["state"] == "PENDING":
                    running[path] = threading.Thread(target=_run, args=[path])
                    running[path].start()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        is_over.set()
        looking.join()
        for path in jobs():
            with contextlib.suppress(ProcessLookupError):
                scancel(["--name", known(path)["name"]])
        for job in running.values():
            job.join()


def _run(path: Path) -> None:
    job = known(path)
    words = shlex.split(job["wrap"])
    is_ours = words[0] == sys.executable  # tests fork it
    with open(job["output"].replace("%%", "%"), "ab") as log:
        script = subprocess.Popen(
            words if is_ours else ["sh", "-c", job["wrap"]],
            cwd=job["chdir"],
            env=job["environment"],
            stdout=log,
            stderr=log,
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
    if (FOLDER / "down").exists():
        print("slurm_load_jobs error: Unable to contact slurm controller", file=sys.stderr)
        sys.exit(1)
    {"sbatch": sbatch, "squeue": squeue, "scancel": scancel}[called](words)

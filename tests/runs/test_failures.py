"""What ended a run is said in a sentence that helps."""

import errno
import logging
import os
import re
import shutil
from typing import NamedTuple

import pytest
import torch

from tests.runs.waiting import tiny
from tfm_core.runs.disk.failures import (
    REFUSALS,
    Refused,
    obstacle,
    os_errors_as_sentences,
    refusal,
    sentence,
)
from tfm_core.sentences import StudentError
from tfm_core.training.checkpoints import CheckpointDamaged
from tfm_core.training.progress import TrainingDiverged


def test_a_failure_says_what_would_help_also_of_the_folder(tmp_path, monkeypatch):
    for error, expected in [
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "memory of cuda:0",
        ),
        (MemoryError(), "memory of cuda:0"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "The memory of"),
        (RuntimeError("MPS backend out of memory (MPS allocated)"), "The memory of"),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full"),
        (OSError("The checkpoint could not be written: No space left on device"), "disk is full"),
        (
            OSError("The checkpoint could not be written: I/O error: Disk quota (os error 122)"),
            "Disk quota exceeded",
        ),
        (
            shutil.Error([("a", "b", "[Errno 30] Read-only file system: '/srv/a' -> '/srv/b'")]),
            "is read-only",
        ),
        (RuntimeError("CUDA error: device-side assert triggered\nmore"), "cuda:0 stopped working"),
        (
            TrainingDiverged("The loss became nan at step 5: try 0.4."),
            "^The loss became nan at step 5",
        ),
        (CheckpointDamaged("The checkpoint last is damaged."), "^The checkpoint last is damaged.$"),
        (StudentError("{name} is not there.", name="cuda:3"), "^cuda:3 is not there.$"),
        (ValueError("Not one of ours."), "^ValueError: Not one of ours. .more in worker.log"),
        (KeyError("weight"), "KeyError: 'weight' .more in worker.log"),
        (RuntimeError(), "RuntimeError: no message"),
        (
            PermissionError(errno.EACCES, "Permission denied"),
            "The permissions of the folder of runs forbid this",
        ),
    ]:
        assert re.search(expected, sentence(error, tiny(), "cuda:0"))
    assert obstacle(tmp_path) is None
    assert "is gone" in obstacle(tmp_path / "gone")
    monkeypatch.setattr("tfm_core.runs.disk.failures.shutil.disk_usage", lambda _: Usage(9, 9, 0))
    assert "disk is full" in obstacle(tmp_path)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_what_the_system_refuses_is_a_sentence_without_a_path(caplog):
    for number in (*REFUSALS, errno.EXDEV):
        error = OSError(number, os.strerror(number), "/srv/runs/.meta.json.0b00c4f5")
        caplog.clear()
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(Refused) as refused,
            os_errors_as_sentences(),
        ):
            raise error
        said = str(refused.value)
        assert said == refusal(error)
        assert "/srv" not in said
        assert "Errno" not in said
        assert said.endswith(".")
        assert "/srv/runs" in caplog.text  # the log has the detail
    assert os.strerror(errno.EXDEV) in refusal(OSError(errno.EXDEV, "", "/srv"))

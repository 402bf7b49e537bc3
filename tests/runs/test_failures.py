"""What ended a run is said in a sentence that helps."""

import errno
import re

import pytest
import torch

from tests.runs.waiting import tiny
from tfm_core.runs.failures import sentence
from tfm_core.sentences import StudentError
from tfm_core.training.checkpoints import CheckpointDamaged
from tfm_core.training.loop import TrainingDiverged


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "memory of cuda:0 is not enough .* size of 2",
        ),
        (MemoryError(), "a batch size of 2 needs about half"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "not enough"),
        (RuntimeError("MPS backend out of memory (MPS allocated)"), "not enough"),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full"),
        (OSError("The checkpoint could not be written: No space left on device"), "disk is full"),
        (OSError(errno.EFBIG, "File too large"), "The disk is full"),
        (RuntimeError("CUDA error: device-side assert triggered\nmore"), "cuda:0 stopped working"),
        (
            TrainingDiverged("The loss became nan at step 5: try 0.4."),
            "^The loss became nan at step 5",
        ),
        (CheckpointDamaged("The checkpoint last is damaged."), "^The checkpoint last is damaged.$"),
        (StudentError("{name} is not there.", name="cuda:3"), "^cuda:3 is not there.$"),
        (ValueError("Not one of ours."), "^ValueError: Not one of ours. .more in worker.log"),
        (KeyError("weight"), "KeyError: 'weight' .more in worker.log"),
        (RuntimeError(), "RuntimeError: no further words"),
        (
            PermissionError(errno.EACCES, "Permission denied"),
            "PermissionError: .*Permission denied",
        ),
    ],
)
def test_a_failure_says_what_would_help(error, expected):
    assert re.search(expected, sentence(error, tiny(), "cuda:0"))


def test_a_batch_of_one_cannot_be_halved():
    assert "smaller model" in sentence(MemoryError(), tiny(batch_size=1), "cpu")

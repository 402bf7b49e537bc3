"""Devices: each is usable or says why not."""

import pytest
import torch

from tfm_core.training.devices import (
    devices,
    fastest_threads,
    measure_threads,
    memory_used,
    resolve,
)

FOUND = devices()


def test_the_cpu_is_there_and_measuring_threads_changes_nothing():
    assert FOUND[0].available
    (cpu,) = [device for device in FOUND if device.name == "cpu"]
    assert cpu.available
    assert 0 < cpu.memory_free <= cpu.memory_total
    assert cpu.thread_choices[0] == 1
    for name in ["", "abacus", "cuda:x", "cuda:-1", "CPU", "tpu:0"]:
        with pytest.raises(ValueError, match=r"Unknown device .* use cpu, cuda:0"):
            resolve(name)
    before = torch.get_num_threads()
    took = measure_threads((1, 2), repeats=2)
    assert took.keys() == {1, 2}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("device", FOUND, ids=lambda device: device.name)
def test_a_device_resolves_or_says_why_it_is_not_there(device):
    if device.available:
        assert str(resolve(device.name)) in {device.name, f"{device.name}:0"}
        assert device.reason is None
        assert memory_used(resolve(device.name)) >= 0
    else:
        assert device.reason.endswith(".")
        with pytest.raises(ValueError, match=f"{device.name} is not available: .* Use cpu"):
            resolve(device.name)


@pytest.mark.cuda
def test_memory_in_use_on_a_gpu_is_that_of_its_tensors():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU")
    before = memory_used("cuda:0")
    tensor = torch.zeros(1024, 1024, device="cuda:0")
    assert memory_used("cuda:0") - before >= tensor.nbytes


@pytest.mark.parametrize(
    ("took", "best"),
    [
        ({1: 1.0, 2: 0.95}, 1),
        ({1: 1.0, 2: 0.6}, 2),
        ({1: 1.0, 2: 3.0}, 1),
        ({1: 1, 2: 0.6, 4: 0.58}, 2),
    ],
)
def test_more_threads_must_gain_a_tenth(took, best):
    assert fastest_threads(took) == best

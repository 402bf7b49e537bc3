"""nn.Linear beside F.linear: the scripts run as they stand, and print what is shown."""

import subprocess
import sys

import torch

from tfm_core.inspect.training_step.plain import both


def test_both_scripts_print_the_same_in_a_process_of_their_own():
    (_title, modules, first), (_title, functions, second) = both()
    for call in ("nn.Linear(4, 3)", "nn.ReLU()"):
        assert call in modules
    assert "F.relu(F.linear(x, weight, bias))" in functions
    assert first.splitlines()[-3:] == ["weight (3, 4)", "bias (3,)", "[]"]
    said = [line.partition(": ")[2] for line in second.splitlines()[-3:]]
    assert said == ["True", "True", "True"]
    numbers = [text.partition("grad_fn")[0] for text in (first, second)]
    assert numbers[0] == numbers[1]
    assert "tensor([[" in numbers[0]
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{modules}\n{functions}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{first}\n{second}\n"
    both.cache_clear()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    both()
    assert torch.equal(torch.rand(3), expected)

"""nn.Linear beside F.linear: the scripts run as they stand, and print what is shown."""

import subprocess
import sys

import torch

from tfm_core.inspect.training_step.plain import both


def test_both_scripts_print_the_same_in_a_process_of_their_own():
    modules, functions = both()
    for call in ("nn.Linear(4, 3)", "nn.ReLU()"):
        assert call in modules.code
    assert "F.relu(F.linear(x, weight, bias))" in functions.code
    first, second = modules.printed, functions.printed
    assert first.splitlines()[-3:] == ["weight (3, 4)", "bias (3,)", "[]"]
    said = [line.partition(": ")[2] for line in second.splitlines()[-3:]]
    assert said == ["True", "True", "True"]
    numbers = [text.partition("grad_fn")[0] for text in (first, second)]
    assert numbers[0] == numbers[1]
    assert "tensor([[" in numbers[0]
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{modules.code}\n{functions.code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{modules.printed}\n{functions.printed}\n"
    both.cache_clear()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    both()
    assert torch.equal(torch.rand(3), expected)

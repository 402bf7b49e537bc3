"""A layer as a module and as a function, in plain PyTorch: two scripts, and what they print.

The scripts run as shown; below them is their real output.
"""

from __future__ import annotations

from functools import lru_cache
from textwrap import dedent

from tfm_core.sentences import N_

MODULES = dedent("""\
    import torch
    from torch import nn

    torch.manual_seed(7)
    x = torch.randn(2, 4)  # two examples, four numbers each

    linear = nn.Linear(4, 3)  # an object that holds its weights
    relu = nn.ReLU()  # an object that holds nothing
    y = relu(linear(x))
    y.sum().backward()
    print(y)

    for name, value in linear.named_parameters():
        print(name, tuple(value.shape))
    print(list(relu.parameters()))
    """)
FUNCTIONS = dedent("""\
    import torch.nn.functional as F

    # the same weights as plain tensors, kept by whoever calls
    weight = linear.weight.detach().clone().requires_grad_()
    bias = linear.bias.detach().clone().requires_grad_()
    z = F.relu(F.linear(x, weight, bias))
    z.sum().backward()
    print(z)

    print("same output:", torch.equal(y, z))
    print("same gradient:", torch.equal(linear.weight.grad, weight.grad))
    print("as by hand:", torch.allclose(z, (x @ weight.T + bias).clamp(min=0)))
    """)


@lru_cache(maxsize=1)
def both() -> list[tuple[str, str, str]]:
    """Run both scripts, the second behind the first, as in one notebook.

    Return of each what it shows, its code, and what it printed.
    """
    import torch

    names: dict[str, object] = {}
    titles = (
        N_("**`nn.Linear`, `nn.ReLU`**: modules hold their parameters."),
        N_("**`F.linear`, `F.relu`**: functions take theirs as arguments."),
    )
    made: list[tuple[str, str, str]] = []
    with torch.random.fork_rng(devices=[]):
        for title, code in zip(titles, (MODULES, FUNCTIONS), strict=True):
            lines: list[str] = []

            def keep(*values: object, to: list[str] = lines) -> None:
                to.append(" ".join(map(str, values)))

            names["print"] = keep  # a page is drawn in a thread: nothing else may be redirected
            exec(code, names)
            made.append((title, code, "\n".join(lines)))
    return made

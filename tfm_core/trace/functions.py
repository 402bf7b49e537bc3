"""The functions of a step, each run on a small example: what goes in, the call, what comes out.

Which ones a step uses is read from its code, so a step cannot show one that it does not use.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.record import Example
from tfm_core.inspect.syntax import statements
from tfm_core.sentences import Paragraph

if TYPE_CHECKING:
    from tfm_core.trace.steps import Step


def _read() -> Iterator[Example]:
    """Iterate over the functions of ``functions.toml``, and the calls that variants bring along."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    for key, entry in tomllib.loads(text).items():
        lines, of = tuple(entry["lines"]), entry.get("of")
        says = Paragraph(f"walk_functions/{key}")
        yield Example(entry["name"], entry["found"], says, lines, None if of is None else tuple(of))
    yield from (norm.example for norm in NORMS.values() if norm.example)
    yield from (one.example for one in ACTIVATIONS.values() if one.example)


FUNCTIONS = tuple(dict.fromkeys(_read()))


def used(step: Step) -> list[tuple[Example, str]]:
    """Return the functions that a step's code uses, in its order, with their examples.

    An example is as an interpreter shows it: ``>>> `` before what is typed.
    """
    code = "\n".join(line.partition("#")[0] for line in step.code.splitlines())
    places: list[tuple[int, int, Example]] = []
    for number, function in enumerate(FUNCTIONS):
        found = re.search(function.found, code)
        name, kind = function.of or ("", "NoneType")
        if found and type(step.names.get(name)).__name__ == kind:
            places.append((found.start(), number, function))
    return [
        (function, session(function.lines))
        for _start, _number, function in sorted(places, key=lambda place: place[:2])
    ]


@cache
def session(lines: tuple[str, ...]) -> str:
    """Run lines of Python; return what an interpreter would show of it.

    They draw their random numbers apart from everybody else's.
    """
    import math

    import torch
    import torch.nn.functional as F
    from torch import nn

    names: dict[str, object] = {"torch": torch, "F": F, "nn": nn, "math": math}
    lines_shown: list[str] = []
    with torch.random.fork_rng(devices=[]):
        for line in lines:
            first, *rest = line.splitlines()
            lines_shown += [f">>> {first}", *(f"... {more}" for more in rest)]
            if isinstance(statements(line)[0], ast.Expr):  # only our own lines run here
                lines_shown.append(repr(eval(line, names)))
            else:
                exec(line, names)
    return "\n".join(lines_shown)

"""The step of positions, which all families add alike."""

from __future__ import annotations

from tfm_core.inspect.walk import Step, number_question, seen, shape_question
from tfm_core.inspect.walk_forward import Subject


def positions(
    subject: Subject, axis: str, module: str, number: int, *, setting: str = "position"
) -> Step:
    """What is added to say where a token stands, or that nothing is.

    setting: the one of the model that names the kind.
    """
    tape = subject.tape
    position = str(getattr(subject.config, setting, "none"))
    embedded, placed = tape[f"{module}.unplaced"], tape[f"{module}.placed"]
    before = [seen("embedded", "vectors without place", embedded, f"B {axis} d_model")]
    code = "placed = embedded  # nothing is added here"
    rows = tape.get(f"{module}.rows")
    if rows is not None:
        before.append(seen("rows", "a row for each position", rows, f"{axis} d_model"))
        code = "placed = embedded + rows"
    batch, length, d_model = placed.shape
    if position == "learned":
        n = subject.model.get_parameter(f"{module}.table").numel()
        question = number_question(
            "How many parameters does the table of positions have?",
            n,
            f"{n // d_model} rows of {d_model} = {n:,}.",
        )
    else:
        question = shape_question(
            "the result, tokens with their places",
            (batch, length, d_model),
            (batch, length, 2 * d_model),
            (batch, 2 * length, d_model),
            (length, d_model),
            (batch, length, d_model, length),
        )
    return Step(
        number, "positions", "Positions", ("positions", f"position-{position}"), code,
        tuple(before), (seen("placed", "vectors with their place", placed, f"B {axis} d_model"),),
        question, shown="" if rows is None else "rows",
    )  # fmt: skip

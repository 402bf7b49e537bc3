"""A notebook that reads a zip's files beside it: curves, weights, answers, attention.

It needs torch, safetensors, pandas and plotly, and nothing of the app.
"""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from tfm_core.anatomy import stacks
from tfm_core.export import layout
from tfm_core.inspect.source.carried import Carried
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError


def of(run: Run, data: Carried | None) -> str:
    """Return the notebook as JSON. data: what the model file carries; None: nothing to ask."""
    import nbformat

    v4: Any = nbformat.v4  # its functions have no types
    cells = [
        v4.new_markdown_cell(text) if kind == "words" else v4.new_code_cell(text)
        for kind, text in _cells(run, data)
    ]
    for number, cell in enumerate(cells, 1):
        cell["id"] = f"cell-{number}"  # the same run makes the same notebook
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.validate(book)
    text: str = v4.writes(book)
    return text


def _cells(run: Run, data: Carried | None) -> list[tuple[str, str]]:
    """Return the cells: their kind, "words" or "code", and their text."""
    cells = [
        (
            "words",
            f"# {_plain(run.meta.name)}\n\nThe files beside this notebook are one training. It "
            "needs `pip install torch safetensors pandas plotly`, and nothing else.",
        ),
        ("code", _SETTINGS),
        ("words", "## How it learned"),
        ("code", _CURVES),
    ]
    if data is None:
        return cells
    cells += [
        ("words", "## The model, with its weights"),
        ("code", _MODEL),
        ("words", "## What it answers"),
        ("code", _answers(run, data)),
    ]
    if stacks(run.experiment.model):
        cells += [("words", "## Where it looks"), ("code", _ATTENTION)]
    return cells


_SETTINGS = dedent(f"""\
    import json
    from pathlib import Path

    import pandas as pd
    import plotly.express as px

    experiment = json.loads(Path("{layout.EXPERIMENT}").read_text(encoding="utf-8"))
    facts = json.loads(Path("{layout.FACTS}").read_text(encoding="utf-8"))
    print("seed", experiment["seed"], "on", facts["device"], "by", facts["versions"])
    pd.json_normalize(experiment).T.rename(columns={{0: "value"}})""")

_CURVES = dedent(f"""\
    metrics = pd.read_csv("{layout.METRICS}")
    px.line(metrics, x="step", y="loss", color="split", markers=True, title="Loss")""")

_MODEL = dedent(f"""\
    from model import Model
    from safetensors.torch import load_file

    model = Model()
    model.load_state_dict(load_file("{layout.WEIGHTS}"))
    model.eval()
    print(f"{{sum(p.numel() for p in model.parameters()):,}} parameters")""")

_ATTENTION = dedent("""\
    from model import attention_weights

    weights = attention_weights(model)  # of the last answer: a layer's name -> (B, H, Q, K)
    name, maps = list(weights.items())[-1]
    px.imshow(maps[0].numpy(), facet_col=0, title=f"{name}: one map a head")""")


def _answers(run: Run, data: Carried) -> str:
    """Return the cell that asks the model about the examples that the snapshots looked at."""
    try:
        probe = run.probe()
    except StudentError:  # none was written, or it is damaged
        return f"model.{data.verb}({data.example!r})" if not data.mean else _NO_PICTURES
    if probe.images is not None:
        return dedent(f"""\
            items = json.loads(Path("{layout.PROBE}").read_text(encoding="utf-8"))["items"]
            pictures = load_file("{layout.PICTURES}")["images"]  # (N, C, height, width), 0 to 255
            answers = [model.{data.verb}(picture) for picture in pictures]
            """) + _table(["{truth}", '"answer": answers'], data)
    if data.verb == "write":
        return f"print(model.write({data.example!r}))"
    return dedent(f"""\
        items = json.loads(Path("{layout.PROBE}").read_text(encoding="utf-8"))["items"]
        answers = [model.{data.verb}(item["src_text"]) for item in items]
        """) + _table(
        ['"asked": [item["src_text"] for item in items]', "{truth}", '"answer": answers'], data
    )


_NO_PICTURES = "# No picture was kept with this run: model.classify(path) reads one of yours."


def _table(columns: list[str], data: Carried) -> str:
    truth = (
        '"true": [item["label"] for item in items]'
        if data.classes
        else '"true": [item["tgt_text"] for item in items]'
    )
    return f"pd.DataFrame({{{', '.join(columns)}}})".replace("{truth}", truth)


def _plain(text: str) -> str:
    """Return a name that Markdown takes for no markup."""
    marks: dict[Any, Any] = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>#$|"})
    return text.translate(marks)

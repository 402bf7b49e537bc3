"""Runs from Python: opened by what one knows of them, as tables, arrays and figures."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.nightly import IS_NIGHTLY
from tests.pages.made_runs import damaged_run, made_run
from tfm_core import runs
from tfm_core.plots import of_run
from tfm_core.runs.store import RECORDED, RunStore

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def korean() -> runs.OpenedRun:
    return runs.open("recorded-korean")


def test_a_run_is_opened_by_id_beginning_name_and_folder(store) -> None:
    run, other = made_run(store, name="Mine"), made_run(store, name="Theirs")
    length = next(n for n in range(1, 18) if run.id[:n] != other.id[:n])
    for which in (run.id, run.id[:length], "Mine", " mine ", str(run.folder), run.folder):
        assert runs.open(which, store=store).id == run.id
    run = made_run(store, name="Mine")
    made_run(store, name=run.id)
    assert runs.open(run.id, store=store).name == "Mine"


def test_where_none_or_several_are_meant_it_is_said(store, tmp_path) -> None:
    ids = {made_run(store, name="Twin").id for _n in range(7)}
    with pytest.raises(ValueError, match=r"“Twin” matches 7 runs: .* and 2 more") as caught:
        runs.open("Twin", store=store)
    assert sum(run_id in str(caught.value) for run_id in ids) == 5
    for which in ("nobody", "../../etc/passwd", "x" * 500, "~nobody", "null\0"):
        with pytest.raises(runs.RunNotFound, match="No run has the id, name or folder"):
            runs.open(which, store=store)
    (tmp_path / "empty").mkdir()
    with pytest.raises(runs.RunNotFound, match=r"it has no experiment\.json"):
        runs.open(tmp_path / "empty", store=store)
    with pytest.raises(runs.RunDamaged, match="This run is damaged"):
        runs.open(damaged_run(store).id, store=store)


def test_curves_are_rows_by_step_and_split(store) -> None:
    run = runs.open(made_run(store, step=97).id, store=store)
    frame = run.curves()
    assert list(frame.columns[:4]) == ["split", "step", "epoch", "loss"]
    counts = frame["split"].value_counts()
    assert (counts["train"], counts["validation"]) == (97, 3)
    assert frame["step"].is_monotonic_increasing
    assert frame["step"].dtype == "int64"
    last = frame[frame["split"] == "train"].iloc[-1]
    assert last["step"] == 97
    assert last["accuracy"] == pytest.approx(1 - 0.9 * np.exp(-4), abs=1e-6)
    assert np.isnan(last["sequence_accuracy"])


def test_attention_comes_cut_to_the_tokens_with_their_names(korean) -> None:
    kinds = korean.attention_kinds
    for kind, n_layers in kinds.items():
        found = korean.attention(kind=kind, example=1)
        n_layers_, n_heads, n_query, n_key = found.weights.shape
        assert (n_layers_, n_heads) == (n_layers, korean.experiment.model.n_heads)
        assert (n_query, n_key) == (len(found.query), len(found.key)) == found.may_attend.shape
        np.testing.assert_allclose(found.weights.sum(-1), 1, atol=5e-3)  # of half precision
        assert not found.weights[..., ~found.may_attend].any()
    one = korean.attention(step=korean.steps[0], layer=1, kind="decoder")
    assert one.weights.ndim == 3
    assert (one.step, one.layer) == (korean.steps[0], 1)
    every = korean.attention(step=korean.steps[0], kind="decoder")
    np.testing.assert_array_equal(one.weights, every.weights[1])
    np.testing.assert_array_equal(np.asarray(one), one.weights)
    assert korean.attention().kind == "cross"
    assert korean.attention().step == korean.steps[-1]


@pytest.mark.parametrize("folder", sorted(RECORDED.glob("recorded-*"))[:: 1 if IS_NIGHTLY else 3])
def test_every_recorded_run_has_curves_attention_and_figures(folder) -> None:
    run = runs.open(folder.name)
    assert {"train", "validation"} <= set(run.curves()["split"])
    assert run.attention(layer=0).weights.size
    for figure in (of_run.curves(run), of_run.attention(run.attention(layer=0))):
        assert figure.data
    assert folder.name in run._repr_html_()


def test_what_is_not_there_or_cannot_be_drawn_is_said(korean, store) -> None:
    for asked, sentence in [
        ({"step": 999}, "There is no snapshot of step 999; the nearest of"),
        ({"layer": 9}, "There is no layer 9; the last is 2, counting from 0"),
        ({"layer": -1}, "There is no layer -1"),
        ({"kind": "patches"}, "no attention 'patches', only encoder, decoder, cross"),
        ({"example": 99}, "There is no example 99"),
        ({"example": -1}, "There is no example -1"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            korean.attention(**asked)
    with pytest.raises(ValueError, match="There is no curve 'speed'"):
        of_run.curves(korean, "speed")
    with pytest.raises(ValueError, match=r"Choose one: run\.attention"):
        of_run.attention(korean.attention())
    with pytest.raises(ValueError, match="There is no head 4: this layer has 4"):
        of_run.attention(korean.attention(layer=0), head=4)
    (test,) = [line for line in of_run.curves(korean, "accuracy").data if line.name == "test"]
    assert test.y[0] == pytest.approx(korean.run.curves().test.last("accuracy"))
    one = of_run.attention(korean.attention(layer=0), head=1)
    np.testing.assert_array_equal(one.data[0].z, korean.attention(layer=0).weights[1])
    run = runs.open(made_run(store).id, store=store)
    with pytest.raises(ValueError, match="has no snapshot yet"):
        run.attention()
    with pytest.raises(ValueError, match="has no checkpoint"):
        run.model()


def test_all_runs_are_a_table(store) -> None:
    first, second = made_run(store, name="First"), made_run(store, name="Second", state="stopped")
    broken = damaged_run(store)
    frame = runs.list(store=store).set_index("id")
    assert set(frame.index) == {first.id, second.id, broken.id}
    row = frame.loc[second.id]
    assert (row["name"], row["state"], row["task"], row["seed"]) == (
        "Second",
        "stopped",
        "reverse",
        0,
    )
    assert row["seconds"] == 61.0
    assert pd.isna(frame.loc[broken.id, "seed"])
    assert str(frame["created"].dt.tz) == "UTC"
    assert len(runs.list(store=RunStore(store.root / "nowhere", recorded=None))) == 0


def test_a_name_is_no_markup_in_a_notebook(store) -> None:
    run = runs.open(made_run(store, name="<b>bold</b>").id, store=store)
    assert "&lt;b&gt;bold" in run._repr_html_()


def test_the_lines_of_the_readme_run_in_a_notebook_and_show_themselves() -> None:
    blocks = (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")[1:]
    (lines,) = [code for block in blocks if "runs.open" in (code := block.split("```")[0])]
    imports, _gap, rest = lines.partition("\n\n")
    cells = [new_code_cell(imports), *(new_code_cell(line) for line in rest.strip().splitlines())]
    notebook = new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [
        {kind for output in cell.outputs for kind in output.get("data", {})}
        for cell in notebook.cells
    ]
    assert "text/html" in shown[2]  # the curves
    assert "text/plain" in shown[3]
    assert "text/plain" in shown[4]
    assert shown[5] & {"application/vnd.plotly.v1+json", "text/html"}

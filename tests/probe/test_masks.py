"""The mask shown is the mask used: over causalities, windows and families."""

import numpy as np
import pytest

from tests.pairwise import pairwise
from tests.probe.expected_masks import expected_mask
from tests.training.test_loop import experiment
from tfm_core.choices.variants.forms import CAUSALITIES
from tfm_core.inspect.attention import alignment, heads
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.progress import stage
from tfm_core.probe import masks
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.snapshot import probe_of, take
from tfm_core.runs import notebook
from tfm_core.runs.record.snapshots import write, write_probe
from tfm_core.runs.store import RunStore
from tfm_core.training.loop import build

WRITERS = ("encoder-decoder", "decoder-only")
MASKS = ("", "no-causal-mask", "mask-transposed")
CASES = [
    (f"{family}-{causality}-{window}", family, "copy", {"mistakes": causality, "window": window})
    for family, causality, window in (
        one.values() for one in pairwise(family=WRITERS, causality=MASKS, window=(0, 2))
    )
]
CASES += [
    ("captioner", "captioner", "captions", {"mistakes": "mask-transposed"}),
    ("encoder-only", "encoder-only", "copy", {"window": 2}),
    ("label", "encoder-only", "sentiment", {"pooling": "cls"}),
    ("blanks", "encoder-only", "masked-words", {"window": 2}),
    ("language", "decoder-only", "grammar", {"mistakes": "mask-transposed"}),
    ("recurrent", "recurrent", "copy", {}),
    ("vit", "vit", "mnist-5000", {"pooling": "cls"}),
]


@pytest.fixture(
    scope="module",
    params=[case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def run(request, tmp_path_factory):
    """A run of an untrained model with its probe and one snapshot, taken as a worker takes it."""
    family, task, model = request.param
    chosen = experiment(family, task, model=model)
    made = RunStore(tmp_path_factory.mktemp("runs"), recorded=None).create(chosen, name="Untrained")
    trainer = build(chosen)
    write_probe(made.folder, probe_of(trainer))
    write(made.folder, take(trainer))
    return made


def each_map(run):
    probe, snapshot = run.probe(), run.snapshot(0)
    for kind, modules in modules_by_kind(run.experiment).items():
        for module in modules:
            for index, item in enumerate(probe.attended):
                example = example_of(run.experiment, probe, snapshot, index)
                yield kind, module, item, index, example


def test_the_mask_of_an_example_is_the_one_defined_and_no_weight_lies_under_it(run):
    for _kind, module, item, _index, example in each_map(run):
        mask = expected_mask(run.experiment, item, module)
        np.testing.assert_array_equal(example.masks[module], mask)
        seen = example.attention[module] > 0
        assert not seen[:, ~mask].any()
        assert seen[:, mask].all()  # an untrained model looks everywhere it may


def test_what_is_measured_of_heads_knows_the_same_mask(run):
    probe, snapshot = run.probe(), run.snapshot(0)
    figures = heads.of_snapshot(run.experiment, probe, snapshot)
    assert np.all(figures["padding"] == 0)
    for kind, modules in modules_by_kind(run.experiment).items():
        for module in modules:
            if run.experiment.task.kind == "text" and kind in {"decoder", "sequence"}:
                looks_ahead = CAUSALITIES[run.experiment.model.causality].sees_future
                following = figures["next"][figures["module"] == module]
                assert np.isfinite(following).all() == looks_ahead
    if alignment.can_be_scored(run.experiment, probe):
        for module, score in alignment.score(run.experiment, probe, snapshot).groupby("module"):
            even = []
            for item in probe.attended:
                mask = expected_mask(run.experiment, item, module)
                uniform = mask / np.maximum(mask.sum(-1, keepdims=True), 1)
                rows = alignment.rows_that_write(run.experiment, item, module, uniform[None])[0]
                truth = alignment.true_cells(item)
                even += [
                    row[cells].sum() for row, cells in zip(rows, truth, strict=True) if cells.any()
                ]
            assert score["chance"].iloc[0] == pytest.approx(np.mean(even))


def test_stage_notebook_and_file_hold_the_mask(run):
    snapshot = run.snapshot(0)
    assert snapshot.masks.keys() == snapshot.attention.keys()
    content = (run.folder / "snapshots" / "00000000.safetensors").read_bytes()
    assert content.count(b'"masks/') <= len(modules_by_kind(run.experiment))
    for kind, modules in modules_by_kind(run.experiment).items():
        found = notebook.open_run(run.folder).attention(kind=kind, layer=0)
        mask = expected_mask(run.experiment, run.probe().items[0], modules[0])
        np.testing.assert_array_equal(found.may_attend, mask)
        if kind == "patches":
            continue
        for index, item in enumerate(run.probe().attended):
            drawn = stage.read(run, kind, index).weights[0]
            for layer, module in enumerate(modules):
                mask = expected_mask(run.experiment, item, module)
                for head in drawn[layer]:
                    np.testing.assert_array_equal(np.isnan(head), ~mask)


def test_all_may_be_attended_to_where_no_mask_is_applied():
    everything = np.ones((1, 1, 1, 1), bool)
    np.testing.assert_array_equal(masks.cut(everything, 3, (2, 5)), np.ones((2, 5), bool))

"""What a forward pass records: weights, masks, snapshots."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.models.variants import text_batch, text_model
from tests.pairwise import pairwise
from tests.probe.expected_masks import expected_mask
from tests.training.test_loop import EXPERIMENTS, experiment
from tfm_core.anatomy.names import names_of
from tfm_core.choices.variants.forms import CAUSALITIES
from tfm_core.decoding import greedy
from tfm_core.inspect import stage
from tfm_core.inspect.attention import alignment, heads
from tfm_core.inspect.attention.example import example_of
from tfm_core.layers import attention
from tfm_core.probe import masks, snapshot
from tfm_core.probe.capture import capture
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.snapshot import probe_of, take
from tfm_core.runs import notebook
from tfm_core.runs.snapshots import write_probe, write_snapshot
from tfm_core.runs.store import RunStore
from tfm_core.training.loop import build, train

ONE = "decoder.layers.1.cross_attention"


@pytest.fixture
def model():
    return text_model("encoder-decoder", n_encoder_layers=2, n_decoder_layers=3).eval()


@pytest.fixture
def computed(monkeypatch):
    """The shapes of the maps that are computed."""
    shapes = []

    def counted(*args, real=attention.masked_softmax):
        shapes.append(tuple(args[0].shape))
        return real(*args)

    monkeypatch.setattr(attention, "masked_softmax", counted)
    return shapes


def test_weights_are_computed_only_in_the_layers_that_are_asked_for(model, computed):
    inputs = text_batch()
    with capture(model, only={"weights", "mask"}) as everything:
        logits = model(*inputs)
    assert len(computed) == len(everything.of("weights")) == 2 + 2 * 3
    computed.clear()
    with capture(model, only={"weights", "mask"}, modules={ONE}) as cache:
        found = model(*inputs)
    assert computed == [tuple(cache[f"{ONE}.weights"].shape)]
    assert set(cache) == {f"{ONE}.weights", f"{ONE}.mask"}
    torch.testing.assert_close(found, logits)
    torch.testing.assert_close(cache[f"{ONE}.weights"], everything[f"{ONE}.weights"])


@pytest.mark.parametrize("only", [{"residual"}, {"hidden", "input"}, {"projected_key"}])
def test_no_weights_are_computed_where_nobody_keeps_them(model, computed, only):
    with capture(model, only=only) as cache:
        model(*text_batch())
    assert computed == []
    assert {name.rpartition(".")[2] for name in cache} == only


def test_everything_is_kept_where_nothing_is_said(model, computed):
    with capture(model) as cache:
        model(*text_batch())
    assert len(computed) == len(cache.of("weights")) == len(cache.of("scores"))


@pytest.mark.parametrize(
    ("family", "settings", "start"),
    [
        ("decoder-only", {}, "blocks.0."),
        ("decoder-only", {"position": "rotary", "n_kv_heads": 1}, "blocks.1."),
        ("encoder-only", {}, "blocks.0."),
        ("encoder-decoder", {}, "encoder.0."),
        ("encoder-decoder", {}, "decoder.0."),
    ],
)
def test_names_of_transformer_lens_name_what_they_name_there(family, settings, start):
    model = text_model(family, norm_first=True, **settings).eval()
    with capture(model) as cache:
        model(*text_batch())

    def of(hook):
        return cache[f"{start}{hook}"]

    pattern, z = of("attn.hook_pattern"), of("attn.hook_z")
    torch.testing.assert_close(of("attn.hook_attn_scores").softmax(-1), pattern)
    torch.testing.assert_close(torch.einsum("bhqk,bkhd->bqhd", pattern, of("attn.hook_v")), z)
    assert of("attn.hook_q").shape == of("attn.hook_rot_q").shape == z.shape
    stack = {"decoder-only": "decoder", "encoder-only": "encoder"}.get(family, start[:7])
    block = f"{stack}.layers.{start.split('.')[1]}"
    attention = model.get_submodule(f"{block}.self_attention")
    with torch.no_grad():
        out = attention.out_projection(z.flatten(2))
    torch.testing.assert_close(of("hook_attn_out"), out)
    torch.testing.assert_close(of("hook_resid_pre") + out, of("hook_resid_mid"))
    last = of("hook_resid_mid")
    if start == "decoder.0.":
        cross = torch.einsum(
            "bhqk,bkhd->bqhd", of("cross_attn.hook_pattern"), of("cross_attn.hook_v")
        )
        torch.testing.assert_close(of("cross_attn.hook_z"), cross)
        last = last + of("hook_cross_attn_out")
    torch.testing.assert_close(last + of("hook_mlp_out"), of("hook_resid_post"))
    ours = names_of(family, f"{block}.self_attention").transformer_lens
    assert ours == (f"{start}attn",)


@pytest.mark.parametrize(
    "name", ["blocks.0.attn.hook_result", "blocks.9.attn.hook_pattern", "blocks.x", "weights"]
)
def test_other_names_are_no_names(model, name):
    with capture(model) as cache:
        model(*text_batch())
    with pytest.raises(KeyError):
        cache[name]


def test_a_block_that_norms_sums_has_no_residual_stream_to_name():
    model = text_model("decoder-only", norm_first=False).eval()
    with capture(model) as cache:
        model(*text_batch())
    assert cache["blocks.0.attn.hook_pattern"].shape[1] == cache["blocks.0.attn.hook_z"].shape[2]
    with pytest.raises(KeyError):
        cache["blocks.0.hook_resid_post"]


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
    write_snapshot(made.folder, take(trainer))
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
    figures = heads.table_of_snapshot(run.experiment, probe, snapshot)
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
            drawn = stage.read_stage(run, kind, index).weights[0]
            for layer, module in enumerate(modules):
                mask = expected_mask(run.experiment, item, module)
                for head in drawn[layer]:
                    np.testing.assert_array_equal(np.isnan(head), ~mask)


def test_all_may_be_attended_to_where_no_mask_is_applied():
    everything = np.ones((1, 1, 1, 1), bool)
    np.testing.assert_array_equal(masks.cut(everything, 3, (2, 5)), np.ones((2, 5), bool))


FAMILIES = ("encoder-decoder", "decoder-only", "recurrent")


def learned(family, steps, **model):
    """Return a trainer whose validation split is the 8 examples that it learned."""
    heads = {} if family == "recurrent" else {"n_heads": 4, "d_ff": 32}
    rules = {"steps": steps, "batch_size": 8, "learning_rate": 0.01, "validate_every": steps}
    chosen = experiment(
        family,
        "reverse",
        model={"d_model": 32, **heads, **model},
        task={"n_train": 8},
        training=rules,
    )
    trainer = build(chosen)
    trainer.objective.n_train = 8
    for _ in train(trainer):
        pass
    trainer.data = dataclasses.replace(trainer.data, validation=trainer.data.train)
    return trainer


@pytest.mark.core(2)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("steps", [2, 150])
def test_it_holds_what_greedy_decoding_writes(family, steps, monkeypatch):
    trainer = learned(family, steps)
    src, tgt = (
        part[: snapshot.N_SENTENCES] for part in dataclasses.astuple(trainer.data.train)[:2]
    )
    expected = greedy(trainer.model, src, max_len=tgt.size(1) - 1)
    calls = []
    monkeypatch.setattr(snapshot, "greedy", lambda *a, **k: calls.append(a) or greedy(*a, **k))
    taken = snapshot.take(trainer)
    assert np.array_equal(taken.ids, expected.ids.numpy())
    assert taken.confidence == pytest.approx(expected.confidence.numpy(), abs=2e-3)
    assert len(calls) == (1 if steps == 2 else 0)  # whoever knows all needs no decoding


@pytest.mark.parametrize("mistake", ["no-causal-mask", "mask-transposed"])
def test_answers_that_were_read_off_the_truth_are_not_said_to_be_written(mistake):
    trainer = learned("encoder-decoder", 150, mistakes=mistake)
    src, tgt = (
        part[: snapshot.N_SENTENCES] for part in dataclasses.astuple(trainer.data.train)[:2]
    )
    with torch.inference_mode():
        read_off = trainer.model(src, tgt[:, :-1]).argmax(-1)
    assert bool(((read_off == tgt[:, 1:]) | (tgt[:, 1:] == 0)).all())
    expected = greedy(trainer.model, src, max_len=tgt.size(1) - 1)
    assert np.array_equal(snapshot.take(trainer).ids, expected.ids.numpy())


def test_one_wrong_token_asks_for_decoding():
    targets = torch.tensor([[5, 6, 2, 0], [7, 2, 0, 0]])
    logits = torch.nn.functional.one_hot(targets, 9).float() * 9
    logits[1, 3, 4] = 99.0  # padding may say what it wants
    decoded = snapshot._as_taught(logits, targets)
    assert decoded.ids.tolist() == [[5, 6, 2], [7, 2, 0]]
    assert decoded.confidence[1, 2] == 0
    logits[1, 1, 4] = 99.0
    assert snapshot._as_taught(logits, targets) is None


@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=lambda e: f"{e.model.family}-{e.task.name}")
def test_with_fewer_maps_the_predictions_are_those_of_all(chosen):
    trainer = build(chosen)
    whole, few = snapshot.take(trainer), snapshot.take(trainer, 2)
    for name, maps in whole.attention.items():
        assert len(maps) > 2
        np.testing.assert_allclose(few.attention[name], maps[:2], atol=2e-3)
    assert few.texts == whole.texts
    assert few.tokens == whole.tokens
    for name in ("probabilities", "ids", "confidence"):
        if getattr(whole, name) is not None:
            np.testing.assert_allclose(getattr(few, name), getattr(whole, name), atol=2e-3)
    assert trainer.model.training is build(chosen).model.training


def test_examples_without_maps_go_through_the_fused_attention(monkeypatch):
    from tfm_core.layers.attention import MultiHeadAttention as Attention

    trainer, seen = build(EXPERIMENTS[-1]), []
    explicit = Attention.attend_explicitly
    monkeypatch.setattr(
        Attention,
        "attend_explicitly",
        lambda self, q, *rest: seen.append(len(q)) or explicit(self, q, *rest),
    )
    snapshot.take(trainer, 1)
    assert set(seen) == {1}

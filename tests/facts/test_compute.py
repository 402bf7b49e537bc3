"""Parameters and operations of a configuration, and the sizes that are free."""

import tracemalloc
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tests.anatomy.configurations import config_of, models, samples
from tests.models.variants import CAPTION_SHAPE, SMALL, vit_model
from tfm_core.anatomy.names import SCHEME_LABELS
from tfm_core.choices.config import FAMILIES, MODEL_CONFIGS, Experiment, ViTConfig
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.choices.config.task import tasks_for
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape
from tfm_core.facts.architectures import (
    ARCHITECTURES,
    FreeSizes,
    of_experiment,
    offered,
    resized,
    sizes_of,
)
from tfm_core.facts.compute import macs, seconds, unasked
from tfm_core.facts.learning_rate import calmer_rate, nearest_preset, usual_rate
from tfm_core.facts.parameter_table import named_parameters, parameter_table
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.probe.capture import capture
from tfm_core.trace.source.file import source_code


def counted(model, *inputs):
    """FLOPs by PyTorch's counter, on the path that computes attention explicitly."""
    with FlopCounterMode(display=False) as counter, capture(model, only={"weights"}):
        model(*inputs)
    return counter.get_total_flops()


@pytest.mark.core(2)
@pytest.mark.parametrize("family", MODEL_CONFIGS)
def test_flops_are_those_of_the_flop_counter(family):
    src, tgt = torch.ones(2, 7, dtype=torch.long), torch.ones(2, 5, dtype=torch.long)
    shape, inputs, patches = TextShape(17, 19), (src, tgt), {}
    if family in ("vit", "captioner"):
        patches, images = {"patch_size": 2}, torch.randn(2, 3, 6, 6)
        shape, inputs = ImageShape(6, 3, 5), (images,)
        if family == "captioner":
            shape, inputs = CAPTION_SHAPE, (images, tgt)
    for settings in samples(family, rounds=2):
        config = config_of(family, {**patches, **settings})
        # on the meta device PyTorch takes its recurrent networks apart into products
        with torch.device("meta" if family == "recurrent" else "cpu"):
            model = build_model(config, shape)
        expected = counted(model, *(one.to(next(model.parameters()).device) for one in inputs))
        found = 2 * sum(macs(config, shape, batch=2, src_len=7, tgt_len=5).values())
        assert found == expected, settings


@pytest.mark.parametrize("name", ["bert-base", "gpt2-small", "transformer-base", "vit-b"])
def test_flops_at_scale_are_those_of_the_flop_counter(name):
    known = ARCHITECTURES[name]
    with torch.device("meta"):
        model = build_model(known.model, known.shape)
        if isinstance(known.shape, ImageShape):
            inputs = (torch.empty(1, 3, 224, 224),)
        else:
            n_src = 23 if known.shape.has_source else 0
            inputs = tuple(torch.ones(1, n, dtype=torch.long) for n in (n_src, 29))
        expected = counted(model, *inputs)
    assert 2 * sum(macs(known.model, known.shape, src_len=23, tgt_len=29).values()) == expected


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("vit-ti", 1.25),
        ("vit-s", 4.60),
        ("vit-b", 17.56),
        ("vit-b-32", 4.41),
        ("vit-l", 61.55),
        ("vit-h", 167.3),
    ],
)
def test_gmacs_of_vision_transformers(name, published):
    known = ARCHITECTURES[name]
    total = sum(macs(known.model, known.shape).values()) / 1e9
    assert round(total, 1 if published > 100 else 2) == published


@pytest.mark.parametrize(
    "settings",
    [{}, {"activation": "swiglu"}, {"n_layers": 1}, {"mistakes": "no-output-projection"}],
)
def test_what_nobody_asks_for_is_what_training_leaves_out(settings):
    """With dropout, where PyTorch's attention on a CPU is made of products that are counted."""
    settings = {**settings, "pooling": "cls", "dropout": 0.1}
    config = ViTConfig.parse({**SMALL, "patch_size": 2, **settings})
    model, images, shape = vit_model(**settings), torch.randn(3, 3, 6, 6), ImageShape(6, 3, 5)
    with FlopCounterMode(display=False) as counter:
        model(images)
    left_out = counted(model, images) - counter.get_total_flops()
    assert left_out == 2 * 3 * unasked(config, shape) > 0
    assert unasked(ViTConfig.parse({**config.model_dump(), "pooling": "mean"}), shape) == 0


def test_flops_are_those_of_the_counter_and_training_costs_three_passes():
    for name, preset in PRESETS.items():
        known = of_experiment(preset.experiment, "")
        lengths = {"src_len": known.src_len, "tgt_len": known.tgt_len}
        # without data no expert knows its tokens
        with torch.device("cpu" if getattr(known.model, "n_experts", 0) else "meta"):
            model = build_model(known.model, known.shape)
            expected = counted(model, *example_of(known))
        assert 2 * sum(macs(known.model, known.shape, **lengths).values()) == expected, name
    config = MODEL_CONFIGS["decoder-only"].parse(SMALL)
    shape = TextShape(19, 19, one_vocabulary=True, has_source=False)
    tgt = torch.ones(2, 5, dtype=torch.long)
    expected = counted(build_model(config, shape), tgt[:, :0], tgt)
    for src_len in (0, 7):
        assert (
            2 * sum(macs(config, shape, batch=2, src_len=src_len, tgt_len=5).values()) == expected
        )
    """Each product has two in the backward pass, but for those that read no learned input."""
    known = ARCHITECTURES["gpt2-small"]
    model = build_model(
        known.model.replace(n_layers=2, d_model=48, n_heads=3, d_ff=96), known.shape
    )
    words = torch.ones(1, 7, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:  # with dropout no fused kernel, so all is seen
        model(words[:, :0], words).sum().backward()
    forward = counted(model, words[:, :0], words)
    assert counter.get_total_flops() == 3 * forward


def example_of(known):
    """Return one of the longest examples of a task, on the default device."""
    shape, words = known.shape, torch.ones(1, known.tgt_len, dtype=torch.long)
    if isinstance(shape, TextShape):
        n_src = known.src_len if shape.has_source else 0
        return torch.ones(1, n_src, dtype=torch.long), words
    images = torch.ones(1, shape.channels, shape.image_size, shape.image_size)
    return (images,) if isinstance(shape, ImageShape) else (images, words)


@given(models(), st.sampled_from(list(SCHEME_LABELS)))
def test_rows_and_formulas_add_up_to_the_parameters_of_every_variant(chosen, scheme):
    table = parameter_table(*chosen, scheme)
    with init_on_meta():
        model = build_model(*chosen)
    assert table.total == sum(parameter.numel() for parameter in model.parameters())
    kinds = {type(module).__name__ for module in model.modules()}
    assert {row.kind for row in table.rows} <= kinds
    for rows in (table.rows, table.folded):
        assert sum(row.n_parameters for row in rows) == table.total
        assert sum(row.share for row in rows) == pytest.approx(1)
        for row in rows:
            formula = row.formula.replace(" (tied)", "").replace("x", "*")
            assert eval(formula or "0") == row.n_parameters, row


def test_tied_weights_are_counted_once_and_matrices_have_a_row_each():
    known = ARCHITECTURES["gpt2-small"]
    (output,) = [r for r in parameter_table(known.model, known.shape).rows if r.module == "output"]
    assert output.n_parameters == 0
    assert output.tied_to == "token_embedding.table.weight"
    assert output.formula == "0 (tied)"
    known = ARCHITECTURES["gpt2-xl"]
    folded = {row.module: row for row in parameter_table(known.model, known.shape).folded}
    row = folded["decoder.layers.0–47.feed_forward.up"]
    assert row.repeats == 48
    assert row.formula == "48 x (1600 x 6400 + 6400)"
    known = ARCHITECTURES["mixtral-8x7b"]
    table = parameter_table(known.model, known.shape)
    assert (table.total, table.active) == (46_702_792_704, 12_879_925_248)
    folded = {row.module: row for row in table.folded}
    row = folded["decoder.layers.0–31.feed_forward.experts.0–7.up"]
    assert row.repeats == 32 * 8
    assert row.formula == "8 x (32 x (4096 x 14336))"
    rows = rows_of("text-korean", "notebook")
    for letter in "QKV":
        row = rows[f"encoder.layers.0.attn.W_{letter}"]
        assert (row.n_parameters, row.shape) == (262_144, "weight 512 x 512")
        assert row.our_name == "encoder.layers.0.self_attention.in_projection"
    assert rows["decoder.layers.5.addnorm3.norm"].our_name == "decoder.layers.5.feed_forward_norm"
    sliced = rows_of("text-vit", "notebook")
    assert sliced["encoder.layers.1.attn.k_mappings"].n_parameters == 2 * (4 * 4 + 4)
    assert rows_of("gpt2-small", "hugging-face")["transformer.h.0.attn.c_attn"].shape == (
        "weight 768 x 2304, bias 2304"  # Conv1D has its inputs first
    )


@pytest.mark.parametrize("name", ["gpt2-xl", "vit-h"])
def test_the_largest_tables_take_under_200_mb(name):
    known = ARCHITECTURES[name]
    parameter_table.cache_clear()
    tracemalloc.start()
    parameter_table(known.model, known.shape)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("gpt-grammar", "token_embedding.table", "output"),
        ("sentiment", "token_embedding.table", "output"),
        ("addition", "source_embedding.table", "output"),
        ("captions", "stem.convolution", "output"),
        ("translate", "src_embedding.table", "output"),
    ],
)
def test_a_table_has_the_names_of_its_family_as_the_generated_file_has(name, first, last):
    chosen = PRESETS[name].experiment
    shape = data_shape(chosen)
    modules = [row.module for row in parameter_table(chosen.model, shape).rows]
    assert (modules[0], modules[-1]) == (first, last)
    names = {"__name__": "generated"}
    exec(source_code(chosen.model, shape), names)
    with torch.device("meta"):
        theirs = names["Model"]().named_modules(remove_duplicate=False)
    own = [path for path, part in theirs if list(part.parameters(recurse=False))]
    assert sorted(own) == sorted(modules)


def rows_of(name, scheme):
    known = ARCHITECTURES[name]
    return {row.module: row for row in parameter_table(known.model, known.shape, scheme).rows}


def test_shapes_in_other_schemes_are_those_of_their_models():
    rows = rows_of("vit-b", "hugging-face")  # as Transformers 4.57 has them
    assert rows["vit.embeddings.cls_token"].shape == "1 x 1 x 768"
    assert rows["vit.embeddings.position_embeddings"].shape == "1 x 197 x 768"
    projection = rows["vit.embeddings.patch_embeddings.projection"]
    assert projection.shape == "weight 768 x 3 x 16 x 16, bias 768"
    assert rows_of("gpt2-small", "hugging-face")["transformer.wpe"].shape == "weight 1024 x 768"
    rows = rows_of("gpt2-small", "transformer-lens")
    assert rows["blocks.7.attn.W_V"].shape == "W_V 12 x 768 x 64, b_V 12 x 64"
    assert rows["blocks.7.attn.W_O"].shape == "W_O 12 x 64 x 768, b_O 768"
    assert rows["blocks.7.mlp.W_in"].shape == "W_in 768 x 3072, b_in 3072"
    assert rows["unembed.W_U"].shape == "W_U 768 x 50257"
    text = named_parameters(
        *(getattr(ARCHITECTURES["gpt2-small"], n) for n in ("model", "shape")), "transformer-lens"
    )
    assert "    attn\n      W_Q 12 x 768 x 64, b_Q 12 x 64\n" in text
    known = ARCHITECTURES["text-vit"]
    table = parameter_table(known.model, known.shape, "transformer-lens")
    assert {row.module for row in table.folded} == {""}
    assert sum(row.n_parameters for row in table.folded) == table.total == 1_770
    assert not named_parameters(known.model, known.shape, "transformer-lens")


def known(name):
    return of_experiment(PRESETS[name].experiment, name)


def total(one):
    return parameter_table(one.model, one.shape).total


def test_a_word_costs_its_rows_and_other_sizes_change_nothing():
    base, d = known("translate"), 64
    own = sizes_of(base)
    wider = resized(base, FreeSizes(src_vocabulary=own.src_vocabulary + 3))
    assert total(wider) - total(base) == 3 * d
    wider = resized(base, FreeSizes(tgt_vocabulary=own.tgt_vocabulary + 3))
    assert total(wider) - total(base) == 3 * (d + d + 1)
    longer = resized(base, FreeSizes(src_len=own.src_len + 5, tgt_len=7))
    assert (longer.src_len, longer.tgt_len) == (own.src_len + 5, 7)
    assert total(longer) == total(base)
    base = known("translate")
    assert resized(base, FreeSizes()) is base
    assert resized(base, sizes_of(base)) is base
    base = known("gpt-grammar")
    with pytest.raises(ValueError, match="65 tokens need 65 position rows"):
        resized(base, FreeSizes(tgt_len=65))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("translate", ("src_vocabulary", "tgt_vocabulary", "src_len", "tgt_len")),
        ("gpt-grammar", ("tgt_vocabulary", "tgt_len")),
        ("sentiment", ("src_vocabulary", "src_len")),
        ("vit-digits", ()),
        ("captions", ()),
    ],
)
def test_each_model_has_the_sizes_that_it_reads_and_writes(name, names):
    base = known(name)
    assert offered(base.shape) == names
    new = resized(base, FreeSizes(501, 502, 11, 12))
    assert (new is base) is (not names)
    if names:
        parameter_table(new.model, new.shape)


def changed(experiment: Experiment, section: str, **values) -> Experiment:
    part = getattr(experiment, section).model_dump() | values
    return experiment.replace(**{section: part})


def test_everything_has_a_time_and_halves_precision_and_checkpointing_cost():
    for name, preset in PRESETS.items():
        assert seconds(preset.experiment) == pytest.approx(preset.seconds), name
    for family, task in ((own, task) for own in FAMILIES for task in tasks_for(own)):
        values = default_sections(family, task)
        if "patch_size" in values["model"]:
            values["model"]["patch_size"] = 1  # divides all pictures
        assert seconds(Experiment.parse(values)) > 0
    whole = PRESETS["vit-digits"].experiment
    n = whole.training.steps // 2
    assert seconds(whole, n) == pytest.approx(seconds(whole) / 2, rel=0.1)
    halved = changed(whole, "training", batch_warmup=0.5)
    assert 0.4 * seconds(whole) < 2 * seconds(halved, n) < 0.8 * seconds(whole)
    assert seconds(halved) - seconds(halved, n) == pytest.approx(seconds(whole) / 2, rel=0.1)
    chosen = PRESETS["vit-digits"].experiment
    for name in ("bf16", "fp16"):
        assert seconds(changed(chosen, "training", precision=name)) > 1.2 * seconds(chosen)
    again = seconds(changed(chosen, "training", checkpointing=True)) / seconds(chosen)
    assert 1.1 < again < 4 / 3


@pytest.mark.parametrize("name", ["translate", "gpt-text", "vit-digits", "captions"])
def test_deeper_wider_and_longer_take_more(name):
    chosen = PRESETS[name].experiment
    depths = [field for field in type(chosen.model).model_fields if field.endswith("layers")]
    for field in depths:
        times = [seconds(changed(chosen, "model", **{field: n})) for n in (1, 2, 3, 4, 7)]
        assert all(less < more for less, more in pairwise(times))
    wider = changed(chosen, "model", d_model=2 * chosen.model.d_model)
    assert seconds(wider) > seconds(chosen)
    larger = changed(chosen, "training", batch_size=3 * chosen.training.batch_size)
    assert seconds(larger) > seconds(chosen)
    shorter = changed(chosen, "training", steps=chosen.training.steps // 2)
    assert seconds(shorter) == pytest.approx(seconds(chosen) / 2, rel=0.1)  # a validation is first


COPY = PRESETS["copy"].experiment


def test_the_rate_to_try_is_that_of_the_nearest_preset_of_its_optimiser():
    for name, preset in PRESETS.items():
        chosen = preset.experiment
        wider = changed(chosen, "model", d_model=2 * chosen.model.d_model)
        assert nearest_preset(chosen).name == nearest_preset(wider).name == name
        assert usual_rate(chosen) == chosen.training.learning_rate
    assert calmer_rate(changed(COPY, "training", learning_rate=10.0)) == 0.004
    assert calmer_rate(changed(COPY, "training", learning_rate=0.005)) == 0.0005
    assert calmer_rate(changed(COPY, "training", optimizer="sgd", learning_rate=10.0)) == 0.1
    digits = PRESETS["vit-digits"].experiment
    assert digits.training.optimizer == "muon"
    for optimizer in ("adam", "adamw"):
        assert usual_rate(changed(digits, "training", optimizer=optimizer)) == 0.004
    assert usual_rate(changed(digits, "training", optimizer="sgd")) == 0.1
    assert usual_rate(changed(COPY, "training", optimizer="muon")) == COPY.training.learning_rate

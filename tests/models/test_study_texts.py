"""Models of the study notebooks: every one is built, counted, and does what its settings say."""

import torch
from torch import nn

from tests.models.variants import SMALL, S, text_batch
from tfm_core.choices.config import EncoderOnlyConfig
from tfm_core.choices.config.shape import CaptionShape, ImageShape, TextShape
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.compute import macs
from tfm_core.facts.parameter_table import own_name, own_names, parameter_table
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.trace.source.file import source_code


def laid_out(config, shape):
    """A model of names and shapes on the meta device."""
    with init_on_meta():
        return build_model(config, shape).to("meta")


NAMES = [name for name in ARCHITECTURES if name.startswith("text-")]
COUNTS = {
    "text-encoder": 3_702 + 1_600,  # the notebook's blocks, and a table of words in front of them
    "text-transformer": 59_610_896,
    "text-simple": 26_583_040,  # as the notebook prints it
    "text-synthetic": 43_747_256,
    "text-sentiment": 9_129_987,
    "text-captions": 33_810_704,
    "text-korean": 62_543_680,
    "text-vit": 1_770,
}


def attention_of(d_model, *, bias=True, n_matrices=4):
    return nn.ModuleList(nn.Linear(d_model, d_model, bias=bias) for _ in range(n_matrices))


def block_of(d_model, d_ff, *, bias=True, n_attentions=1, n_matrices=4, n_norms=None):
    """The layers of one block of a notebook; bias and n_matrices are the attention's."""
    attentions = [
        attention_of(d_model, bias=bias, n_matrices=n_matrices) for _ in range(n_attentions)
    ]
    norms = [nn.LayerNorm(d_model) for _ in range(n_norms or n_attentions + 1)]
    return nn.ModuleList([*attentions, nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), *norms])


def stack_of(n_layers, *args, **sizes):
    return nn.ModuleList(block_of(*args, **sizes) for _ in range(n_layers))


def words_of(n_words, d_model, n_positions=0):
    tables = [nn.Embedding(n_words, d_model)]
    return nn.ModuleList(tables + [nn.Embedding(n_positions, d_model)] * bool(n_positions))


def simple():
    return nn.ModuleList(
        [words_of(10_000, 512, 5_000), stack_of(6, 512, 2048, bias=False), nn.LayerNorm(512)]
    )


def slices():
    """One block of MyVIT: two heads with three maps of 4 x 4 each."""
    heads = [nn.Linear(4, 4) for _ in range(2 * 3)]
    mlp = [nn.Linear(8, 24), nn.Linear(24, 8)]
    return nn.ModuleList([*heads, nn.LayerNorm(8), nn.LayerNorm(8), *mlp])


NOTEBOOKS = {  # every class in plain torch, layer by layer
    "text-encoder": lambda: [words_of(100, 16), stack_of(3, 16, 2)],
    "text-transformer": lambda: [
        words_of(10_000, 512, 100),
        words_of(10_000, 512, 100),
        stack_of(6, 512, 2048),
        stack_of(6, 512, 2048, n_attentions=2),
        nn.Linear(512, 10_000),
    ],
    "text-simple": lambda: [simple()],
    "text-synthetic": lambda: [
        words_of(2_500, 512),
        words_of(3_000, 512),
        stack_of(6, 512, 2048, n_matrices=3, n_norms=1),
        stack_of(6, 512, 2048, n_attentions=2, n_matrices=3, n_norms=1),
        nn.Linear(512, 3_000),
    ],
    "text-sentiment": lambda: [
        words_of(10_000, 256, 5_000),
        stack_of(4, 256, 2048, bias=False),
        nn.LayerNorm(256),
        nn.Linear(256, 128),
        nn.Linear(128, 3),
    ],
    "text-captions": lambda: [
        simple(),
        nn.Linear(2048, 512),
        attention_of(512, bias=False),
        nn.Linear(512, 10_000),
    ],
    "text-korean": lambda: [
        words_of(10_000, 512, 5_000),
        words_of(8_000, 512, 5_000),
        stack_of(6, 512, 2048, bias=False),
        stack_of(6, 512, 2048, bias=False, n_attentions=2),
        nn.LayerNorm(512),
        nn.LayerNorm(512),
        nn.Linear(512, 8_000),
    ],
    "text-vit": lambda: [
        nn.Linear(16, 8),
        nn.ParameterList([torch.empty(1, 8), torch.empty(50, 8)]),
        slices(),
        slices(),
        nn.Linear(8, 10),
    ],
}


def counted(name):
    with torch.device("meta"):
        return count(nn.ModuleList(NOTEBOOKS[name]()))


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_counts_of_the_notebooks_are_those_of_models_and_classes():
    for name in NAMES:
        known = ARCHITECTURES[name]
        assert known.note
        assert counted(name) == COUNTS[name]
        assert count(laid_out(known.model, known.shape)) == COUNTS[name]
        assert parameter_table(known.model, known.shape).total == COUNTS[name]
        assert known.n_parameters in (None, COUNTS[name])
    with torch.device("meta"):
        single = attention_of(512, bias=False)
    assert count(single) == 1_048_576
    known = ARCHITECTURES["text-simple"]
    model = laid_out(known.model, known.shape)
    assert {count(layer.self_attention) for layer in model.encoder.layers} == {count(single)}
    assert f"{count(single):,}" in known.note
    captioner = laid_out(ARCHITECTURES["text-captions"].model, ARCHITECTURES["text-captions"].shape)
    regions = torch.empty(16, 2048, 6, 6, device="meta")
    assert captioner.encode(regions)[0].shape == (16, 36, 512)
    parts = captioner.stem, captioner.decoder.cross_attention, captioner.output
    for n in (*map(count, parts), COUNTS["text-simple"]):
        assert f"{n:,}" in ARCHITECTURES["text-captions"].note
    known = ARCHITECTURES["text-synthetic"]
    model = laid_out(known.model, known.shape)
    assert count(model.encoder) + count(model.decoder) == 39_392_256 > 33_582_976
    whole = known.model.replace(mistakes=())
    assert count(laid_out(whole, known.shape)) == 48_493_496
    experiment, known = PRESETS["vit-text"].experiment, ARCHITECTURES["text-vit"]
    assert experiment.model == known.model
    assert data_shape(experiment) == known.shape


def test_models_of_the_notebooks_answer_in_their_shapes_as_their_files_do():
    for name in NAMES:
        known = ARCHITECTURES[name]
        shape, batch = known.shape, known.batch
        model = laid_out(known.model, shape)
        if isinstance(shape, ImageShape):
            assert model(torch.empty(batch, 1, 28, 28, device="meta")).shape == (batch, 10)
            continue
        if isinstance(shape, CaptionShape):
            words = torch.empty(batch, 20, dtype=torch.int64, device="meta")
            regions = torch.empty(batch, 2048, 6, 6, device="meta")
            assert model(regions, words).shape == (batch, 20, 10_000)
            continue
        ids = [
            torch.empty(batch, n, dtype=torch.int64, device="meta")
            for n in (known.src_len, known.tgt_len)
        ]
        width = known.model.d_model if shape.head == "states" else shape.tgt_vocabulary
        assert model(*ids).shape == (batch, known.tgt_len, width)
    for name in NAMES:
        known = ARCHITECTURES[name]
        undropped = name in ("text-encoder", "text-synthetic", "text-vit")
        assert known.model.dropout == (0.0 if undropped else 0.1)
        if isinstance(known.shape, TextShape):
            assert not known.shape.scale_embedding
    for name in NAMES:
        known = ARCHITECTURES[name]
        namespace = {"__name__": "generated"}
        exec(source_code(known.model, known.shape), namespace)
        with torch.device("meta"):
            made = namespace["Model"]()
        assert count(made) == COUNTS[name]
        names = own_names(known.model, known.shape)
        ours = [own_name(name, names) for name in laid_out(known.model, known.shape).state_dict()]
        assert sorted(made.state_dict()) == sorted(filter(None, ours))


def test_a_last_norm_and_a_hidden_layer_stand_where_they_are_asked_for():
    for norm_first in [True, False]:
        for kind, stands in (("pre-norm", norm_first), ("always", True), ("never", False)):
            config = EncoderOnlyConfig.parse(
                {**SMALL, "norm_first": norm_first, "final_norm": kind}
            )
            model = build_model(config, TextShape(17, 19))
            assert (model.encoder.final_norm is not None) is stands is config.has_final_norm
    config = EncoderOnlyConfig.parse(SMALL)
    shape = TextShape(17, 7, head="mean", n_labels=3, n_hidden=5)
    model = build_model(config, shape)
    assert count(model.output) == 12 * 5 + 5 + 5 * 3 + 3
    out = model(*text_batch())
    assert out.shape == (2, 1, 7)
    work = macs(config, shape, src_len=S, tgt_len=1)["output"]
    assert work == S * 12 + 12 * 5 + 5 * 3

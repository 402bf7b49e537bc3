"""Models of the study notebooks: every one is built, counted, and does what its settings say."""

import pytest
import torch
from torch import nn

from tests.layers.blocks import make_block
from tests.models.variants import SMALL, S, text_batch
from tfm_core.config import EncoderOnlyConfig
from tfm_core.config.shape import ImageShape, TextShape
from tfm_core.data.shape import data_shape
from tfm_core.facts.architectures import ARCHITECTURES, FROM_TEXTS
from tfm_core.facts.compute import macs
from tfm_core.facts.parameter_table import own_name, own_names, parameter_table
from tfm_core.inspect.source.file import source_code
from tfm_core.mistakes import make
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.presets import PRESETS


def laid_out(config, shape):
    """A model of names and shapes on the meta device."""
    with init_on_meta():
        return build_model(config, shape).to("meta")


NAMES = [known.name for known in FROM_TEXTS]
COUNTS = {
    "text-encoder": 3_702 + 1_600,  # the notebook's blocks, and a table of words in front of them
    "text-transformer": 59_610_896,
    "text-simple": 26_583_040,  # as the notebook prints it
    "text-synthetic": 43_747_256,
    "text-sentiment": 9_129_987,
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


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_every_model_of_the_notebooks_has_its_count():
    for name in NAMES:
        known = ARCHITECTURES[name]
        assert known.note
        assert counted(name) == COUNTS[name]
        assert count(laid_out(known.model, known.shape)) == COUNTS[name]
        assert parameter_table(known.model, known.shape).total == COUNTS[name]
        assert known.n_parameters in (None, COUNTS[name])


def test_the_blocks_of_the_smallest_encoder_have_the_notebooks_count():
    known = ARCHITECTURES["text-encoder"]
    assert count(laid_out(known.model, known.shape).encoder) == 3_702


def test_the_counts_that_a_note_gives_are_those_of_the_classes_it_names():
    with torch.device("meta"):
        single = attention_of(512, bias=False)
        captioner = [simple(), nn.Linear(2048, 512), single, nn.Linear(512, 10_000)]
        whole = count(nn.ModuleList(captioner))
    assert (count(single), whole) == (1_048_576, 33_810_704)
    known = ARCHITECTURES["text-simple"]
    model = laid_out(known.model, known.shape)
    assert {count(layer.self_attention) for layer in model.encoder.layers} == {count(single)}
    for n in (count(single), whole, *(count(part) for part in captioner[1:])):
        assert f"{n:,}" in known.note


def test_no_model_of_the_notebooks_drops_out_or_scales_what_its_notebook_does_not():
    for name in NAMES:
        known = ARCHITECTURES[name]
        undropped = name in ("text-encoder", "text-synthetic", "text-vit")
        assert known.model.dropout == (0.0 if undropped else 0.1)
        if isinstance(known.shape, TextShape):
            assert not known.shape.scale_embedding


def test_every_model_of_the_notebooks_answers_in_the_shape_that_its_notebook_says():
    for name in NAMES:
        known = ARCHITECTURES[name]
        shape, batch = known.shape, known.batch
        model = laid_out(known.model, shape)
        if isinstance(shape, ImageShape):
            assert model(torch.empty(batch, 1, 28, 28, device="meta")).shape == (batch, 10)
            continue
        ids = [
            torch.empty(batch, n, dtype=torch.int64, device="meta")
            for n in (known.src_len, known.tgt_len)
        ]
        width = known.model.d_model if shape.head == "states" else shape.tgt_vocabulary
        assert model(*ids).shape == (batch, known.tgt_len, width)


def test_the_file_of_every_model_of_the_notebooks_counts_as_the_model_does():
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


def test_the_printed_total_is_below_that_of_the_stacks_alone():
    known = ARCHITECTURES["text-synthetic"]
    model = laid_out(known.model, known.shape)
    assert count(model.encoder) + count(model.decoder) == 39_392_256 > 33_582_976
    whole = known.model.replace(mistakes=())
    assert count(laid_out(whole, known.shape)) == 48_493_496


def test_the_trainable_preset_is_the_model_of_the_notebook():
    experiment, known = PRESETS["vit-text"].experiment, ARCHITECTURES["text-vit"]
    assert experiment.model == known.model
    assert data_shape(experiment) == known.shape


KINDS = {
    "full": {},
    "unbiased": {"projection_bias": False},
    "no-output": {"mistakes": "no-output-projection"},
    "sliced": {"mistakes": "sliced-heads"},
}


def attention(kind):
    config = EncoderOnlyConfig.parse({**SMALL, **KINDS[kind]})
    return build_model(config, TextShape(17, 19)).encoder.layers[0].self_attention


def test_heads_on_slices_are_full_matrices_that_are_zero_elsewhere():
    ours, full = attention("sliced"), attention("full")
    torch.nn.init.normal_(ours.in_projection.bias)
    with torch.no_grad():
        full.in_projection.weight.copy_(ours.in_projection.weight)
        full.in_projection.bias.copy_(ours.in_projection.bias)
        full.out_projection.weight.copy_(torch.eye(12))
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    torch.testing.assert_close(ours(x), full(x))
    torch.testing.assert_close(ours(x, memory), full(x, memory))
    changed = x.clone()
    changed[..., :4] += 1  # the slice of the first head
    assert torch.equal(ours(x)[..., 4:], ours(changed)[..., 4:])
    assert not torch.allclose(ours(x)[..., :4], ours(changed)[..., :4])


def test_projections_differ_in_their_parameters():
    for kind in KINDS:
        others = [count(attention(other)) for other in KINDS if other != kind]
        assert count(attention(kind)) not in others


def test_sublayers_share_one_norm_and_are_told_apart():
    block, apart = (make_block(12, 3, 11, has_cross=True) for _ in range(2))
    make(["shared-norm"], block)
    assert count(apart) - count(block) == 2 * 2 * 12
    names = [name for name, module in block.named_modules() if name.endswith("_norm")]
    assert names == ["self_attention_norm", "cross_attention_norm", "feed_forward_norm"]
    weights = block.state_dict()
    with torch.no_grad():
        for name in names:
            own = getattr(apart, name)
            own.weight.copy_(block.self_attention_norm.weight.normal_())
    apart.load_state_dict(
        {name.replace("_norm.norm.", "_norm."): value for name, value in weights.items()}
    )
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    torch.testing.assert_close(block(x, memory=memory), apart(x, memory=memory))


def test_a_last_norm_stands_where_it_is_asked_for():
    for norm_first in [True, False]:
        for kind, stands in (("pre-norm", norm_first), ("always", True), ("never", False)):
            config = EncoderOnlyConfig.parse(
                {**SMALL, "norm_first": norm_first, "final_norm": kind}
            )
            model = build_model(config, TextShape(17, 19))
            assert (model.encoder.final_norm is not None) is stands is config.has_final_norm


def test_a_hidden_layer_stands_before_the_labels_and_counts_in_the_arithmetic():
    config = EncoderOnlyConfig.parse(SMALL)
    shape = TextShape(17, 7, head="mean", n_labels=3, n_hidden=5)
    model = build_model(config, shape)
    assert count(model.output) == 12 * 5 + 5 + 5 * 3 + 3
    out = model(*text_batch())
    assert out.shape == (2, 1, 7)
    work = macs(config, shape, src_len=S, tgt_len=1)["output"]
    assert work == S * 12 + 12 * 5 + 5 * 3

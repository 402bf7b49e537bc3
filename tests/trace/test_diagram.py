"""The diagram, the equations and the differences follow the settings."""

from collections import Counter

import pytest

from tests.anatomy.configurations import config_of, samples
from tests.fresh import some, spelled
from tests.models.variants import CAPTION_SHAPE, SMALL, text_config
from tfm_core.choices.config import MODEL_CONFIGS, ViTConfig
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.choices.variants.positions import POSITIONS, POSITIONS_OF_WORDS
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.differences import differences
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.trace.diagram import code_of, diagram, parameters_of
from tfm_core.trace.equations import equations
from tfm_core.trace.trace import index

SHAPES = {"vit": ImageShape(6, 3, 5), "captioner": CAPTION_SHAPE}
PATCHES = {"vit": {"patch_size": 2}, "captioner": {"patch_size": 2}}


def sampled(seed):
    return [
        (family, {**PATCHES.get(family, {}), **settings}, SHAPES.get(family, TextShape(17, 19)))
        for family in MODEL_CONFIGS
        for settings in samples(family, rounds=2, seed=seed)
    ]


MODELS = some(sampled(0), sampled)


SHARED = {"encoder.relative", "decoder.relative"}  # by all blocks of a stack


def parts(config, shape, opened=range(0)):
    return diagram(config, shape, src_len=7, tgt_len=5, opened=opened).nodes


def owned(found, config, shape):
    """Return the parameters of all blocks, each row once."""
    rows = {row.module: row for one in found.values() for row in parameters_of(one, config, shape)}
    return sum(row.n_parameters for row in rows.values())


def drawn(config, shape, **options):
    return diagram(config, shape, src_len=7, tgt_len=5, **options).document()


@pytest.mark.parametrize(("family", "settings", "shape"), MODELS, ids=spelled)
def test_every_block_says_what_it_reads_and_holds_code_and_equations(family, settings, shape):
    config = config_of(family, settings)
    for opened in (range(0), range(9)):
        found = diagram(config, shape, src_len=7, tgt_len=5, opened=opened)
        read = {name: found.reads(name) for name in found.nodes}
        inputs = {name for name, reads in read.items() if not reads}
        assert {found.nodes[name].parts[0].kind for name in inputs} == {"input"}
        assert {name for reads in read.values() for name, _words in reads} <= set(found.nodes)
    dot, known = drawn(config, shape), equations(config, shape)
    assert dot.count("{") == dot.count("}")
    assert "[," not in dot
    for one in known.values():
        assert one.latex.count("{") == one.latex.count("}")
        assert one.latex.count(r"\left(") == one.latex.count(r"\right)")
    steps = set(index(config, shape))
    for opened in (range(0), range(9), range(1)):
        found = parts(config, shape, opened)
        assert owned(found, config, shape) == parameter_table(config, shape).total
        rows = Counter(
            row.module for one in found.values() for row in parameters_of(one, config, shape)
        )
        assert {name for name, n in rows.items() if n > 1} <= SHARED
        for one in found.values():
            assert code_of(one, config, shape)
            assert set(one.equations) <= set(known)
            assert steps & set(one.steps), one.title


def test_captioners_are_drawn_to_their_words_and_arrows_carry_shapes():
    config = MODEL_CONFIGS["captioner"].parse({**SMALL, "patch_size": 2})
    dot = drawn(config, CAPTION_SHAPE)
    for words in ("(B, 3, 6, 6)", "memory\\n(B, 9, 12)", "Target ids", "Cross-attention", "19"):
        assert words in dot, words
    latex = equations(config, CAPTION_SHAPE)
    assert r"\mathrm{patch}_t" in latex["embedding"].latex
    assert "E_{w_t}" in latex["embedding"].latex
    assert "CrossAttention" in latex["block"].latex
    config = MODEL_CONFIGS["encoder-decoder"].parse(SMALL)
    dot = drawn(config, TextShape(17, 19))
    for shape in ("(B, 7)", "(B, 5)", "memory\\n(B, 7, 12)", "(B, 5, 12)", "(B, 5, 19)"):
        assert shape in dot
    assert "(B, 10, 12)" in drawn(
        ViTConfig(**SMALL, patch_size=2, pooling="cls"), ImageShape(6, 3, 5)
    )


@pytest.mark.parametrize("opened", [range(0), range(2)])
@pytest.mark.parametrize("norm_first", [True, False])
def test_residuals_stay_in_their_frames_and_two_stacks_stand_side_by_side(norm_first, opened):
    sizes = {**SMALL, "n_encoder_layers": 2, "n_decoder_layers": 2, "norm_first": norm_first}
    config = MODEL_CONFIGS["encoder-decoder"].parse(sizes)
    made = diagram(config, TextShape(17, 19), src_len=7, tgt_len=5, opened=opened)
    dashed = [line for line in made.document().splitlines() if "style=dashed" in line]
    assert len(dashed) == (2 + 3) * max(1, len(opened))
    for line in dashed:  # from a point inside the block's frame to a sum inside it
        tail, head = line.split(" [")[0].replace('"', "").split(" -> ")
        assert tail.removesuffix(" fork") == head.removesuffix(" +")
    crossed = [f"decoder.layers.{n}.cross_attention" for n in opened or (0,)]
    assert made.across == [("memory", head) for head in crossed]
    assert '{rank=same; "src ids"; "tgt ids";}' in made.document()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_blocks_of_published_models_hold_all_parameters(name):
    known = ARCHITECTURES[name]
    found = parts(known.model, known.shape)
    assert owned(found, known.model, known.shape) == parameter_table(known.model, known.shape).total


def test_equations_code_and_differences_follow_the_settings():
    shape = TextShape(17, 19)

    def latex(part, **settings):
        config = MODEL_CONFIGS["encoder-decoder"].parse({**SMALL, **settings})
        return equations(config, shape)[part].latex

    assert r"x + \mathrm{SelfAttention}(\mathrm{Norm}(x))" in latex("block", norm_first=True)
    assert r"\mathrm{Norm}(x + \mathrm{SelfAttention}(x))" in latex("block", norm_first=False)
    assert r"\max" in latex("feed-forward", activation="relu")
    assert r"\odot" in latex("feed-forward", activation="swiglu")
    assert "R_i" in latex("attention", position="rotary")
    assert "m_h" in latex("attention", position="alibi")
    assert r"\beta(j - i)" in latex("attention", position="t5-bias")
    assert "P_t" in latex("embedding", position="learned")
    assert r"\sqrt{4}" in latex("attention")
    for position in POSITIONS_OF_WORDS:
        found = parts(text_config("encoder-decoder", position=position), TextShape(17, 19))
        kind = POSITIONS[position]
        functions = {function.name for function in kind.functions}
        own, cross = (
            functions & set(found[f"decoder.layers.0.{name}"].code)
            for name in ("self_attention", "cross_attention")
        )
        assert own == (functions if kind.is_inside else set()), position
        assert not cross, position
    said = " ".join(differences(ARCHITECTURES["gpt2-small"], ARCHITECTURES["gpt2-medium"]))
    assert "d_model: 1,024, not 768." in said
    assert "Layers: 24, not 12." in said
    assert "2.85 times the parameters: 354,823,168, not 124,439,808." in said
    base, bert, gpt = (ARCHITECTURES[name] for name in ("transformer-base", "bert-base", "gpt2-xl"))
    said = " ".join(differences(base, bert))
    assert "512 instead of 64" not in said
    table = "Longest sequence: BERT-base has 512 positions; Transformer base (2017) has no limit."
    assert table in said
    assert table in " ".join(differences(bert, base))
    assert "Longest sequence: 1,024, not 512." in differences(bert, gpt)
    assert not [s for s in differences(base, ARCHITECTURES["transformer-big"]) if "Longest" in s]


MISTAKES = [  # settings, then what the equations of attention and of a block say of them
    ({"mistakes": "no-scale"}, "attention", r"\left(q_i^\top k_j\right)"),
    ({"mistakes": "scaled-by-d-model"}, "attention", r"\sqrt{12}"),
    ({"mistakes": "mask-transposed"}, "attention", r"j \ge i"),
    ({"mistakes": "mask-transposed", "window": 2}, "attention", r"i \le j \le i + 2"),
    ({"window": 3, "full_every": 2}, "attention", r"\text{, except in layers } 2, 4, \dots"),
    ({"sink": "learned"}, "attention", r"{e^{s_h} + \sum_{j \le i} e^{z_{ij}}}"),
    ({"mistakes": "no-residuals"}, "block", r"x &\leftarrow \mathrm{FFN}(\mathrm{Norm}(x))"),
    ({"mistakes": "residual-from-normed"}, "block", r"x &\leftarrow x + \mathrm{FFN}(x)"),
    ({"norm": "none"}, "block", r"x &\leftarrow x + \mathrm{FFN}(x)"),
]


@pytest.mark.parametrize(("settings", "part", "said"), MISTAKES)
def test_equations_and_diagram_show_a_mistake(settings, part, said):
    shape = TextShape(17, 19)
    right, wrong = (text_config("decoder-only", **more) for more in ({}, settings))
    assert said in equations(wrong, shape)[part].latex
    assert said not in equations(right, shape)[part].latex
    assert drawn(wrong, shape) != drawn(right, shape)


@pytest.mark.parametrize(
    ("mistakes", "n_dashed"), [("", 2), ("no-residuals", 0), ("residual-from-normed", 2)]
)
def test_a_block_has_a_dashed_arrow_for_each_residual(mistakes, n_dashed):
    config = text_config("decoder-only", mistakes=mistakes, n_layers=1)
    assert drawn(config, TextShape(17, 19)).count("dashed") == n_dashed


@pytest.mark.parametrize(
    ("opened", "frames", "boxes"),
    [(range(0), 1, 0), (range(7), 7, 0), (range(2, 4), 2, 2), (range(0, 1), 1, 1)],
)
def test_a_few_blocks_are_opened_and_those_around_them_share_a_box(opened, frames, boxes):
    config = MODEL_CONFIGS["encoder-only"].parse({**SMALL, "n_layers": 7})
    drawn = diagram(config, TextShape(17, 17), src_len=7, tgt_len=7, opened=opened)
    assert drawn.document().count("subgraph") == frames
    assert sum("-" in name.rpartition(".")[2] for name in drawn.nodes) == boxes


@pytest.mark.parametrize(
    ("node", "steps"),
    [
        ("image", {"picture"}),
        ("stem", {"patches", "patch-projection"}),
        ("positions", {"positions"}),
        ("encoder.layers.1.feed_forward", {"feed-forward"}),
        ("tgt ids", {"tokens", "masks"}),
        ("tgt_positions", {"word-positions"}),
        ("decoder.layers.2.self_attention", {"decoder-attention"}),
        ("decoder.layers.2.cross_attention", {"cross-attention", "decoder-add-norm"}),
        ("decoder.layers.2.feed_forward", {"decoder-feed-forward", "logits"}),
        ("output", {"logits"}),
        ("logits", {"whole"}),
    ],
)
def test_a_block_of_a_captioner_leads_to_its_own_steps_and_its_own_block(node, steps):
    config = text_config("captioner", patch_size=2, n_decoder_layers=3)
    one = parts(config, CAPTION_SHAPE, range(9))[node]
    assert set(index(config, CAPTION_SHAPE)) & set(one.steps) == steps
    layer = node.split(".")[2] if "." in node else None
    assert one.layer == (None if layer is None else int(layer))


@pytest.mark.parametrize(("norm", "expected"), [("layernorm", ("norm",)), ("none", ())])
def test_segments_stand_in_the_equation_of_a_norm_that_they_have(norm, expected):
    shape = TextShape(17, 17, head="pooler", n_segments=2)
    found = parts(text_config("encoder-only", norm=norm), shape)
    assert found["segments"].equations == expected

"""Sizes and calls become a model here, or a sentence says why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.notebook import your_model
from tfm_core.sentences import StudentError


def total(text):
    one = your_model(text).architecture
    return parameter_table(one.model, one.shape).total


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Encoder(3, 16, 4, 2)", 5_302),
        ("EncoderDecoderTransformer(10000, 8000)", 62_543_680),
        ("model = SentimentAnalyzer(vocab_size=10000)", 9_129_987),
        ("SimpleTransformer(10000)", 26_583_040),
        ("ImageCaptioning(vocab_size=10000)", 33_810_704),
        ("vocab_size = 10_000\nmodel = SimpleTransformer(\n    vocab_size,\n)", 26_583_040),
        ("My_Transformer(2500, 3000)", 43_747_256),
        ("MyVIT()", 1_770),
    ],
)
def test_the_calls_of_the_notebooks_give_their_models(text, expected):
    assert total(text) == total(your_model(text).sizes) == expected
    assert not your_model(text).unread


TRANSLATOR = """\
src_vocab_size = 10000
tgt_vocab_size = 10000
src_max_length = 100
tgt_max_length = 100
embed_size = 512
num_heads = 8
num_layers = 6
hidden_dim = 2048
dropout = 0.1
"""
SYNTHETIC = """\
src_vocab = 2500
tgt_vocab = 3000
d_model = 512
num_heads = 8
num_layers = 6
d_ff = 2048
max_seq = 100
batch_size = 5
tot_epoch = 4
"""
VIT = """\
MY_SHAPE = (28, 28, 1)
MY_EPOCH = 5
MY_BATCH = 128
MY_LEARNING = 0.005
MY_PATCH = 7  # patches along a side
MY_ENCODER = 2
MY_HIDDEN = 8
MY_HEAD = 2
MY_MLP = 3
MY_CLASS = 10
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # what the notebooks' own classes have, counted by building them
        (TRANSLATOR, 59_610_896),
        (
            f"{TRANSLATOR}model = Transformer(src_vocab_size, tgt_vocab_size, src_max_length,\n"
            "    tgt_max_length, embed_size, num_heads, num_layers, hidden_dim, dropout)",
            59_610_896,
        ),
        (
            f"{SYNTHETIC}model = My_Transformer(\n  src_vocab, tgt_vocab, d_model, num_heads,\n"
            "  num_layers, d_ff, max_seq)",
            43_747_256,
        ),
        (VIT, 1_770),
        (
            f"{VIT}model = MyVIT(n_patches=MY_PATCH, n_blocks=MY_ENCODER,\n  hidden_d=MY_HIDDEN, "
            "n_heads=MY_HEAD, out_d=MY_CLASS)",
            1_770,
        ),
        (
            "english, korean = 1, 2\nwords = 10000\nmodel = EncoderDecoderTransformer(words, 8000)",
            62_543_680,
        ),
    ],
)
def test_the_cells_of_the_notebooks_give_the_counts_of_their_classes(text, expected):
    assert total(text) == expected


def test_a_captioner_reads_36_regions_of_2048_features_where_nothing_else_is_said():
    shape = your_model("family = captioner\npatch_size = 1").architecture.shape
    assert (shape.image_size**2, shape.channels) == (36, 2048)


def test_a_name_may_be_divided_and_a_constructor_has_defaults():
    text = "embed_size = 48\nheads = 6\nhead_dim = embed_size // heads\nlayers = heads // 2"
    model = your_model(text).architecture.model
    assert (model.d_model, model.n_heads, model.n_layers) == (48, 6, 3)
    model = your_model(
        "def __init__(self, vocab: int, d_model: int = 48, n_heads=6, n_layers=3, d_ff=80):"
    ).architecture.model
    assert (model.d_model, model.n_heads, model.n_layers, model.d_ff) == (48, 6, 3, 80)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SYNTHETIC, ["No class is named", "Positions count as sinusoidal"]),
        ("Captioning(vocab_size=10000)", ["The class Captioning is unknown"]),
        ("Encoder(3, 16, 4, 2)", ["no embedding, but 1,600 of these parameters"]),
        (
            "d_model = 48, n_heads = 6, patch_size = 4, vocab_size = 70",
            ["No class is named", "Not used: src_vocabulary"],
        ),
        ("My_Transformer(2500, 3000)", []),
        ("ImageCaptioning(vocab_size=10000)", []),
    ],
)
def test_what_a_count_rests_on_stands_beside_it(text, words):
    assumed = your_model(text).assumed
    assert len(assumed) == len(words)
    assert all(word in one for word, one in zip(words, assumed, strict=True))


def test_calls_and_settings_of_notebooks_give_their_models():
    model = your_model("model = nn.Transformer(48, 6, 2, 3, dim_feedforward=80)").architecture.model
    assert (model.d_model, model.n_heads, model.d_ff) == (48, 6, 80)
    assert (model.n_encoder_layers, model.n_decoder_layers) == (2, 3)
    assert model.has_final_norm
    ours = "d_model = 48, n_heads = 6, d_ff = 80, n_layers = 3, src_vocabulary = 70"
    for other in (
        "embed_size=48\nnum_heads=6\nhidden_dim=80\nnum_layers=3  # blocks\nvocab_size=70",
        '{"hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 80,'
        ' "num_hidden_layers": 3, "vocab_size": 70}',
        '{\n  "n_embd": 48,\n  "n_head": 6,\n  "n_inner": 80,\n  "n_layer": 3,\n'
        '  "vocab_size": 70\n}',
    ):
        found = your_model(other)
        assert found.architecture == your_model(ours).architecture
        assert not found.unread
    found = your_model(
        "src_vocab_size = 70\ntgt_vocab_size = 90\nsrc_max_length = 7\ntgt_max_length = 9\n"
        "embed_size = 48\nnum_heads = 6\nnum_layers = 3\nhidden_dim = 80\ndropout = 0.1"
    )
    model, known = found.architecture.model, found.architecture
    assert not found.unread
    assert (model.n_encoder_layers, model.n_decoder_layers) == (3, 3)
    assert (known.shape.src_vocabulary, known.shape.tgt_vocabulary) == (70, 90)
    assert (known.src_len, known.tgt_len) == (7, 9)
    found = your_model(
        "hidden_size = 768, num_attention_heads = 12, intermediate_size = 3072, vocab_size = 30522"
        ", num_hidden_layers = 12, n_segments = 2, head = pooler, position = learned, max_len = 512"
        ", activation = gelu, dropout = 0.1, layer_norm_eps = 1e-12"
    )
    known = ARCHITECTURES["bert-base"]
    assert parameter_table(known.model, known.shape).total == total(found.sizes)
    found = your_model(
        "Encoder(3, 16, 4, 2)\nand this is a sentence\nfoo = 3\nBar(3, 4)\nEncoder(1, 2, 3, 4, 5)"
    )
    assert [number for number, _text, _why in found.unread] == [2, 3, 4, 5]
    for (_number, _text, why), word in zip(
        found.unread, ("neither", "Unknown: foo", "Name the numbers", "at most 4"), strict=True
    ):
        assert word in why


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "No model was found"),
        ("hello world", "No model was found"),
        ("Foo(1, 2, 3)", "No model was found"),
        ("d_model = 10, n_heads = 3", "does not divide"),
        ("d_model = abc", "whole number"),
        ("family = recurrent", "choose from"),
        ("family = vit, patch_size = 5", "does not divide"),
        ("vocab_size = 99999999999", "from 1 to"),
        ("(fc): Linear(in_features=3, out_features=4, bias=True)", "tfm_core.look"),
        ("| a.W.weight | 16 |", "tfm_core.look"),
        (
            "class Encoder(nn.Module):\n    def __init__(self, d_model):\n"
            "        self.d_model = d_model",
            "This is code.*tfm_core.look",
        ),
        ("x" * 10_001, "the limit is 10,000"),
        ("__import__('os').system('true')", "No model was found"),
    ],
)
def test_wrong_input_is_answered_with_a_sentence(text, word):
    with pytest.raises(StudentError, match=word):
        your_model(text)


LINES = [
    "Encoder(3, 16, 4, 2)",
    "MyVIT()",
    "nn.Transformer(8)",
    "n_heads = 0",
    "dropout = 2",
    "mistakes = x",
    "family = vit",
    "head = y",
    "max_len = 1",
    "one_vocabulary = maybe",
    "norm_eps = 1e99",
    "n_layers = 1000",
    "position = rotary",
    "d_model = 48",
    "vocab_size = 70",
    "Transformer(",
    ")",
    "d_ff = d_model",
    "head_dim = 64",
]


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=20))
def test_any_text_gives_a_model_or_a_sentence(lines):
    try:
        found = your_model("\n".join(lines))
        assert your_model(found.sizes).architecture == found.architecture
    except StudentError:
        pass

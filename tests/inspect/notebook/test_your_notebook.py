"""A pasted print, table or list of sizes becomes a model here, counted, or a sentence says why not.

The prints of Transformers are those of version 4.57, with its default settings or smaller ones.
"""

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.inspect.source.test_file import plain_notebook
from tfm_core.facts.architectures import ARCHITECTURES, FROM_TEXTS
from tfm_core.inspect.notebook.model import your_model
from tfm_core.inspect.notebook.pasted import read
from tfm_core.inspect.source.file import printed, source_code
from tfm_core.models.build import init_on_meta
from tfm_core.sentences import StudentError

PRINTS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in (Path(__file__).parent / "prints").glob("*.txt")
}
TEXTS = [known.name for known in FROM_TEXTS]


def said(found):
    return " ".join(found.differences)


def made(name, scheme):
    """The model of a generated file, on the meta device."""
    known, space = ARCHITECTURES[name], {"__name__": "generated"}
    exec(source_code(known.model, known.shape, scheme=scheme), space)
    with init_on_meta():
        return space["Model"]()


def pretty(model):
    """The table that the notebooks print: a border, names and counts, and the total."""
    rows = [f"| {name} | {p.numel()} |" for name, p in model.named_parameters()]
    total = sum(p.numel() for p in model.parameters())
    head = ["+------+------+", "| Modules | Parameters |", "+------+------+"]
    return "\n".join([*head, *rows, "+------+------+", f"Total Trainable Params: {total}"])


def shapes(model):
    return "\n".join(f"{name}: {tuple(p.shape)}" for name, p in model.named_parameters())


@pytest.mark.parametrize("is_older", [False, True])
def test_the_notebooks_encoder_is_built_from_its_print(is_older):
    text = str(plain_notebook())
    if is_older:  # before PyTorch 2.13 a norm said nothing of its bias, before 2.1 no list folded
        text = text.replace(", elementwise_affine=True, bias=True", ", elementwise_affine=True")
    found = your_model(text + "\nn_heads = 4")
    model = found.architecture.model
    assert (model.n_layers, model.d_model, model.n_heads, model.d_ff) == (3, 16, 4, 2)
    assert not model.norm_first
    assert not found.unread
    assert (found.counted, found.total) == (3_702, 3_702 + 1_600)
    assert "100 words (1,600 parameters) is added" in said(found)
    assert "how many heads" not in said(found)


def test_blocks_that_are_printed_one_by_one_are_one_stack():
    text = str(nn.Sequential(*plain_notebook().layers))
    assert "(2): EncoderBlock(" in text
    found = your_model(text)
    assert found.architecture.model.n_layers == 3
    assert found.counted == 3_702
    assert "differ from each other" not in said(found)
    line = "(fc1): Linear(in_features=16, out_features=2, bias=True)"
    other = your_model(text.replace(line, line.replace("True", "False"), 1))
    assert "differ from each other" in said(other)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("table", [pretty, shapes])
def test_the_models_of_the_notebooks_are_built_from_their_tables(name, table):
    found = your_model(table(made(name, "notebook")))
    known = ARCHITECTURES[name]
    total = sum(p.numel() for p in made(name, "notebook").parameters())
    assert not found.unread
    assert found.counted == found.total == total
    same = ("d_model", "d_ff", "projection_bias", "position", "final_norm", "norm_first")
    for setting in same if name != "text-vit" else same[:2]:
        assert getattr(found.architecture.model, setting) == getattr(known.model, setting), setting


@pytest.mark.parametrize("name", [*TEXTS, "transformer-base", "bert-base", "vit-b", "vit-mnist"])
def test_a_print_counts_all_but_what_no_print_shows(name):
    model = made(name, "notebook")
    found = your_model(printed(*(getattr(ARCHITECTURES[name], n) for n in ("model", "shape")),
                               "notebook"))  # fmt: skip
    shown = {
        id(p): p.numel()
        for module in model.modules()
        if type(module) in (nn.Linear, nn.LayerNorm) or isinstance(module, nn.Embedding)
        for p in module.parameters(recurse=False)
    }
    n_ties = 0
    if name == "transformer-base":  # a print shows one table three times
        n_ties = 2 * 37_000 * 512
    assert found.counted == sum(shown.values()) + n_ties
    assert not found.unread


TOTALS = {
    "bert": 109_482_240, "gpt2": 124_439_808, "bart": 406_291_456, "t5": 60_490_240,
}  # fmt: skip


@pytest.mark.parametrize("name", TOTALS)
def test_the_prints_of_hugging_face_have_the_counts_of_their_models(name):
    found = your_model(PRINTS[name])
    assert found.counted == TOTALS[name]
    assert not found.unread
    missing = sum(
        int(n.replace(",", "")) for n in re.findall(r"\(([\d,]+) parameters\) has no", said(found))
    )
    assert found.total == found.counted - missing


def test_the_print_of_bert_is_bert_here():
    known, found = ARCHITECTURES["bert-base"], your_model(PRINTS["bert"])
    assert found.architecture.model == known.model
    assert found.architecture.shape == known.shape
    gpt2 = your_model(PRINTS["gpt2"]).architecture
    assert gpt2.model == ARCHITECTURES["gpt2-small"].model


def test_a_vit_has_more_than_its_print_shows_and_that_is_said():
    found = your_model(PRINTS["vit"])
    assert found.total - found.counted == 768 + 197 * 768
    assert "no nn.Parameter" in said(found)
    assert found.architecture.shape.image_size == 224


def test_a_line_that_is_not_understood_is_listed_with_its_reason():
    found = your_model(PRINTS["bert"] + "\nand this is a sentence\n(x): Mystery(3, 4)")
    (sentence, layer) = found.unread
    assert sentence.text == "and this is a sentence"
    assert "Neither" in sentence.why
    assert "Mystery" in layer.text or "Mystery" in layer.why
    assert found.total == TOTALS["bert"]


def test_pytorchs_transformer_is_built_from_its_print_and_its_call():
    with torch.device("meta"):
        theirs = nn.Transformer(d_model=48, nhead=6, num_encoder_layers=2, num_decoder_layers=3,
                                dim_feedforward=80, batch_first=True)  # fmt: skip
    n = sum(p.numel() for p in theirs.parameters())
    found = your_model(f"{theirs}\nnhead = 6\nvocab_size = 50")
    model = found.architecture.model
    assert found.counted == n
    assert (model.n_encoder_layers, model.n_decoder_layers, model.n_heads) == (2, 3, 6)
    assert model.has_final_norm
    assert found.total - n == 2 * 50 * 48 + 48 * 50
    called = your_model("model = nn.Transformer(48, 6, 2, 3, dim_feedforward=80)").architecture
    assert called.model.replace(dropout=model.dropout) == model


def whole_transformer(d_model, d_ff, n_layers, words, *, d_map=0):
    """An encoder and a decoder, each with its tables, whose decoder's block holds another block.

    d_map: width of the maps of queries, keys and values; d_model unless given.
    """

    def module(name, **parts):
        made = type(name, (nn.Module,), {})()
        for part, layer in parts.items():
            made.add_module(part, layer)
        return made

    def attention():
        maps = {
            name: nn.Linear(d_map or d_model, d_map or d_model, bias=False)
            for name in ("values", "keys", "queries")
        }
        return module("SelfAttention", **maps, fc_out=nn.Linear(d_model, d_model))

    def block():
        feed_forward = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        return module("TransformerBlock", attention=attention(), norm1=nn.LayerNorm(d_model),
                      norm2=nn.LayerNorm(d_model), feed_forward=feed_forward,
                      dropout=nn.Dropout(0.1))  # fmt: skip

    def decoder_block():
        return module("DecoderBlock", attention=attention(), norm=nn.LayerNorm(d_model),
                      transformer_block=block(), dropout=nn.Dropout(0.1))  # fmt: skip

    def stack(name, one, **more):
        layers = nn.ModuleList(one() for _ in range(n_layers))
        tables = {"word_embedding": nn.Embedding(words, d_model),
                  "position_embedding": nn.Embedding(100, d_model)}  # fmt: skip
        return module(name, **tables, layers=layers, **more)

    with torch.device("meta"):
        answers = nn.Linear(d_model, words)
        return module("Transformer", encoder=stack("Encoder", block),
                      decoder=stack("Decoder", decoder_block, fc_out=answers))  # fmt: skip


def test_blocks_inside_blocks_and_mixed_biases_are_read():
    theirs = whole_transformer(48, 80, 3, 70)
    found = your_model(f"{theirs}\nheads = 6")
    model, shape = found.architecture.model, found.architecture.shape
    assert found.counted == sum(p.numel() for p in theirs.parameters())
    assert (model.n_encoder_layers, model.n_decoder_layers, model.d_ff) == (3, 3, 80)
    assert (model.position, model.max_len, shape.tgt_vocabulary) == ("learned", 100, 70)
    assert found.counted - found.total == 3 * 3 * 48  # the biases of fc_out
    assert "432 parameters" in said(found)


def test_heads_that_share_a_small_map_are_refused_with_a_sentence():
    with pytest.raises(StudentError, match="share maps of 8 numbers"):
        your_model(str(whole_transformer(48, 80, 3, 70, d_map=8)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Encoder(3, 16, 4, 2)", 5_302),
        ("EncoderDecoderTransformer(10000, 8000)", 62_543_680),
        ("model = SentimentAnalyzer(vocab_size=10000)", 9_129_987),
        ("SimpleTransformer(10000)", 26_583_040),
        ("My_Transformer(2500, 3000)", 43_747_256),
        ("MyVIT()", 1_770),
    ],
)
def test_the_calls_of_the_notebooks_give_their_models(text, expected):
    assert your_model(text).total == expected


def test_sizes_are_known_by_the_names_of_others():
    ours = "d_model = 48, n_heads = 6, d_ff = 80, n_layers = 3, src_vocabulary = 70"
    for other in (
        "embed_size=48\nnum_heads=6\nhidden_dim=80\nnum_layers=3\nvocab_size=70",
        '{"hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 80,'
        ' "num_hidden_layers": 3, "vocab_size": 70}',
    ):
        found = your_model(other)
        assert found.architecture.model == your_model(ours).architecture.model
        assert found.architecture.shape == your_model(ours).architecture.shape
        assert not found.unread


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
        ("(fc): Linear(in_features=3, out_features=4, bias=True)", "No blocks"),
        ("x" * 60_001, "are read"),
        ("\n" * 4_000, "are read"),
        ("__import__('os').system('true')", "No model was found"),
    ],
)
def test_wrong_input_is_answered_with_a_sentence(text, word):
    with pytest.raises(StudentError, match=word):
        your_model(text)


def test_a_brackets_mismatch_and_depth_are_said():
    assert "before its last bracket" in read("A(\n(b): B(").unread[-1].why
    assert "what is not open" in read(")").unread[0].why
    assert "too deep" in read("A(\n" * 60).unread[0].why


def test_a_line_that_is_too_long_is_listed_and_not_searched():
    found = your_model(f"Encoder(3, 16, 4, 2)\ntotal {'1a' * 20_000}")
    assert (found.total, len(found.unread)) == (5_302, 1)
    assert "characters" in found.unread[0].why


def test_a_last_norm_and_a_line_that_contradicts_the_layers_are_said():
    text = str(plain_notebook()).replace("addnorm", "norm")
    found = your_model(f"{text}\nd_model = 99\nnorm_first = true")
    assert "d_model = 99 is not followed" in said(found)
    assert "no norm behind it; here final_norm: never" in said(found)
    assert found.architecture.model.d_model == 16


def test_keys_that_heads_share_are_named():
    with pytest.raises(StudentError, match="W_K” has 256 numbers where queries have 2,048"):
        your_model(shapes(made("tinyllama", "notebook")))


SHARED = {name for name, one in ARCHITECTURES.items() if getattr(one.model, "n_kv_heads", 0)}
"""Those whose heads share keys, which is not read yet."""


@pytest.mark.parametrize("name", sorted({*PRINTS, *ARCHITECTURES} - SHARED))
def test_the_sizes_of_a_model_give_it_again(name):
    known = ARCHITECTURES.get(name)
    text = PRINTS.get(name) or shapes(made(name, "notebook")) if known else PRINTS[name]
    found = your_model(text)
    again = your_model(found.sizes)
    assert again.architecture == found.architecture
    assert again.sizes == found.sizes
    assert len(found.sizes) < 1_000


LINES = [line for text in PRINTS.values() for line in text.splitlines()]
LINES += ["n_heads = 0", "dropout = 2", "mistakes = x", "family = vit", "head = y", "max_len = 1",
          "one_vocabulary = maybe", "norm_eps = 1e99", "n_layers = 1000", "| a.W.weight | 16 |",
          "position = rotary", "Total params: 3", "MyVIT()", "nn.Transformer(8)"]  # fmt: skip


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=40), st.data())
def test_any_text_gives_a_model_or_a_sentence(lines, data):
    text = PRINTS[data.draw(st.sampled_from(sorted(PRINTS)))].splitlines()
    first = data.draw(st.integers(0, len(text)))
    try:
        found = your_model("\n".join([*text[:first], *lines, *text[first:]]))
        assert your_model(found.sizes).architecture == found.architecture
    except StudentError:
        pass

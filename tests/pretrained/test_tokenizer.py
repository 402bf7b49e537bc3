"""A tokenizer.json is read as data; what is none is refused in a sentence."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from tfm_core.pretrained.folder import Unopenable
from tfm_core.pretrained.tokenizer import read_words
from tfm_core.sentences import StudentError

pytestmark = pytest.mark.quick

VOCABULARY = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "the": 3, "cat": 4, "cats": 5, "##s": 6}


@pytest.fixture
def folder(tmp_path):
    tokenizer = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 1), ("[CLS]", 0))
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_text_is_cut_whole_and_pieces_are_parts_of_it(folder):
    words = read_words(folder, n_words=7)
    cut = words.cut("the cats zebra cat")
    assert cut.ids == (0, 3, 5, 2, 4, 1)  # neither cut off nor filled up, as its file asks for
    assert cut.pieces == ("[CLS]", "the", "cats", "zebra", "cat", "[SEP]")
    assert words.text_of([3, 4, 6, 99, -1]) == "the cats"
    assert words.tokens == tuple(VOCABULARY)


def test_bytes_are_shown_as_text(tmp_path):
    vocabulary = {one: i for i, one in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words = read_words(tmp_path, n_words=256)
    cut = words.cut("a 안")
    assert cut.pieces[:2] == ("a", " ")
    assert words.text_of(cut.ids) == "a 안"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "\x00", '{"model": {"type": "Code"}}', '{"version": "1.0"}']
)
def test_what_is_no_tokenizer_is_refused(folder, text):
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(Unopenable, match=r"tokenizer\.json"):
        read_words(folder, n_words=7)


def test_a_vocabulary_larger_than_the_table_is_refused(folder):
    with pytest.raises(Unopenable, match="7 tokens"):
        read_words(folder, n_words=6)
    values = json.loads((folder / "tokenizer.json").read_text())
    values["model"]["vocab"] = {}
    (folder / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(Unopenable, match=r"tokenizer\.json"):
        read_words(folder, n_words=7)


def test_a_tokenizer_that_needs_code_is_refused(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenization_mine.py").write_text("raise SystemExit")
    with pytest.raises(Unopenable, match="code"):
        read_words(folder, n_words=7)


def test_long_texts_are_refused(folder):
    words = read_words(folder, n_words=7)
    with pytest.raises(StudentError, match="limit"):
        words.cut("a" * 20_001)

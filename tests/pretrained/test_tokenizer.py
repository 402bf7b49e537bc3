"""A tokenizer.json is read as data; what is none is refused in a sentence."""

from __future__ import annotations

import json
import re

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tfm_core.data.opened_folder import Unopenable, read_tokenizer
from tfm_core.data.opened_task import TokenizerVocabulary
from tfm_core.data.vocabulary import position_labels, text_of_names
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


def test_a_text_is_cut_whole(folder):
    words = read_tokenizer(folder, n_words=7)
    cut = words.cut("the cats zebra cat")
    assert cut == (0, 3, 5, 2, 4, 1)  # neither cut off nor filled up, as its file asks for
    assert words.text_of([3, 4, 6, 99, -1]) == "the cats"
    assert words.tokens == tuple(VOCABULARY)


def test_bytes_are_shown_as_text(tmp_path):
    vocabulary = {one: i for i, one in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words = read_tokenizer(tmp_path, n_words=256)
    cut = words.cut("aé 안")
    assert words.text_of(cut) == "aé 안"
    known = TokenizerVocabulary(words.shown())
    row = known.row(cut)
    assert row == ("a", "é 1/2", "é 2/2", " ", "안 1/3", "안 2/3", "안 3/3")
    assert known.encode(row) == list(cut)
    assert all(token in known for token in row)
    assert known.row(cut[:-1])[-2:] == ("<0xEC>", "<0x95>")  # no character yet
    assert known.encode(["ì"]) == known.encode(["<0xEC>"])  # as runs of older versions say it


@pytest.mark.parametrize(
    ("given", "shown", "text"),
    [
        (
            "The Ġì ķĪ ðŁĺ Ģ </s>",
            ["The", " 안 1/3", "안 2–3/3", "😀 1–3/4", "😀 4/4", "</s>"],
            "The 안😀</s>",
        ),
        ("▁é <0xEC> <0x95> <0x88>", [" é", "안 1/3", "안 2/3", "안 3/3"], " é안"),
        ("naïve café čas ağ 안녕 ##s", None, "naïve café čas ağ 안녕 ##s"),
    ],
)
def test_names_of_any_tokenizer_are_shown_as_text(given, shown, text):
    names = given.split(" ")
    assert list(position_labels(names)) == (shown or names)
    assert position_labels(position_labels(names)) == position_labels(names)
    assert text_of_names(position_labels(names)) == text


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "\x00", '{"model": {"type": "Code"}}', '{"version": "1.0"}']
)
def test_what_is_no_tokenizer_is_refused(folder, text):
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(Unopenable, match=r"tokenizer\.json"):
        read_tokenizer(folder, n_words=7)


def test_a_vocabulary_larger_than_the_table_is_refused(folder):
    with pytest.raises(Unopenable, match="7 tokens"):
        read_tokenizer(folder, n_words=6)
    values = json.loads((folder / "tokenizer.json").read_text())
    values["model"]["vocab"] = {}
    (folder / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(Unopenable, match=r"tokenizer\.json"):
        read_tokenizer(folder, n_words=7)


@pytest.mark.parametrize("files", [("tokenization_mine.py",), ("spiece.model",), ("merges.txt",)])
def test_a_tokenizer_that_needs_code_is_refused_with_the_command_that_writes_one(files, tmp_path):
    for name in files:
        (tmp_path / name).write_text("raise SystemExit")
    save = re.escape("AutoTokenizer.from_pretrained(PATH).save_pretrained(PATH)")
    with pytest.raises(Unopenable, match=save):
        read_tokenizer(tmp_path, n_words=7)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "The", "cafe", "café", "##s", "한", "\u2028"]


@pytest.mark.parametrize(
    ("settings", "ids"),
    [
        (None, (2, 4, 6, 8, 1, 1, 3)),  # BERT takes syllables apart with the accents
        ({"do_lower_case": True, "strip_accents": False}, (2, 4, 7, 8, 9, 9, 3)),
        ({"do_lower_case": False, "tokenizer_class": "BertTokenizer"}, (2, 5, 7, 8, 9, 9, 3)),
        ({"cls_token": "[PAD]", "sep_token": {"content": "[UNK]"}}, (0, 4, 6, 8, 1, 1, 1)),
    ],
)
def test_a_list_of_words_is_read_as_berts(settings, ids, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    words = read_tokenizer(tmp_path, n_words=11)
    assert words.cut("The cafés 한 한") == ids
    assert words.tokens == tuple(WORDS)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[new]": 11, "[newer]": 12}))
    words = read_tokenizer(tmp_path, n_words=13)
    assert words.cut("[newer][new]", is_whole=False) == (12, 11)
    again = tmp_path / "again"
    again.mkdir()
    (again / "tokenizer.json").write_bytes(words.content)  # what a run keeps
    assert read_tokenizer(again, n_words=13).digest == words.digest


def test_byte_pairs_are_read_as_gpt_2s(tmp_path):
    letters = ["t", "h", "e", "Ġ", "th", "the", "Ġthe", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(letters)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nt h\nth e\nĠ the\n", encoding="utf-8")
    words = read_tokenizer(tmp_path, n_words=8)
    assert words.cut("the thet<|endoftext|>") == (5, 6, 0, 7)
    assert words.text_of([5, 6]) == "the the"


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"vocab.txt": b"\xff"}, "vocab.txt is not valid"),
        ({"vocab.txt": b"the"}, "vocab.txt is not valid"),  # without tokens around a text
        ({"vocab.txt": b"[CLS]\n[SEP]", "tokenizer_config.json": b'{"do_lower_case": 3}'}, "vocab"),
        ({"vocab.txt": b"[CLS]\n[SEP]", "tokenizer_config.json": b"[]"}, "tokenizer_config.json"),
        ({"vocab.txt": b"[CLS]\n[SEP]", "added_tokens.json": b'{"a": 9}'}, "vocab.txt"),
        ({"vocab.txt": b"[CLS]", "tokenizer_config.json": b'{"tokenizer_class": "My"}'}, "has no"),
        ({"vocab.json": b'{"a": 0}', "merges.txt": b"a b"}, "merges.txt is not valid"),
        ({"vocab.json": b'{"a": 0}', "merges.txt": b"a"}, "merges.txt is not valid"),
        ({"vocab.json": b"[]", "merges.txt": b""}, "merges.txt is not valid"),
    ],
)
def test_a_list_of_words_that_is_none_is_refused(files, name, tmp_path):
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    with pytest.raises(Unopenable, match=name):
        read_tokenizer(tmp_path, n_words=7)


@pytest.mark.parametrize(
    ("normalizer", "text", "lost"),
    [
        (None, "abxca \n가x", "xc가"),
        (normalizers.NFKD(), "ªbq\ufb01", "q\ufb01"),
        (normalizers.Replace("q", "abab"), "aqbx", "x"),
        (normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]), "áb\u0301x", "x"),
    ],
)
def test_letters_that_byte_pairs_leave_out_are_known(normalizer, text, lost, tmp_path):
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert read_tokenizer(tmp_path, n_words=3).lost(text) == lost


@pytest.mark.parametrize(
    "model",
    [
        models.WordPiece({"the": 0}, unk_token="[UNK]"),
        models.WordLevel({"the": 0}, unk_token="[UNK]"),
        models.Unigram([("the", -1.0), ("t", -2.0), ("h", -2.0), ("e", -2.0)]),
    ],
)
def test_a_word_that_a_tokenizer_has_no_token_for_is_said(model, tmp_path):
    Tokenizer(model).save(str(tmp_path / "tokenizer.json"))
    words = read_tokenizer(tmp_path, n_words=7)
    assert words.cut("the") == (0,)
    with pytest.raises(StudentError, match="may have no token for unknown characters"):
        words.cut("zebra")


@pytest.mark.parametrize("n", [24, 40])
def test_a_tokenizer_that_makes_texts_endless_is_refused(n, folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace("a", "aa")] * n)
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(Unopenable, match="times as long; the limit is 1,000"):
        read_tokenizer(folder, n_words=7)


def test_the_normalizer_of_llama_is_none_that_grows(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    llama = [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    tokenizer.normalizer = normalizers.Sequence([*llama, normalizers.NFKC()])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert read_tokenizer(folder, n_words=7).cut("the", is_whole=False)


def test_long_texts_are_refused(folder):
    words = read_tokenizer(folder, n_words=7)
    with pytest.raises(StudentError, match="limit"):
        words.cut("a" * 20_001)

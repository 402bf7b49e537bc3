"""The small folders of Transformers, each with a tokenizer of 37 tokens."""

from __future__ import annotations

import json
import shutil
import string
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from tests.pretrained.models_of_transformers import FOLDERS

BEGIN, CLS, SEP, UNKNOWN, UNKNOWN_PIECE, MASK = 0, 2, 3, 1, 2, 7
WRITERS, VIEWERS, ANSWERERS = ("gpt2", "llama"), ("vit",), ("t5",)
_LETTERS = [*string.ascii_lowercase, "Ġ", ".", "'", "ì", "ķ", "Ī"]


def folder_with_tokenizer(name: str, target: Path, **config: Any) -> Path:
    """Copy a folder, give it a tokenizer unless it reads pictures, and change its config.json."""
    shutil.copytree(FOLDERS / name, target)
    if not name.startswith(VIEWERS):
        made = {WRITERS: writer, ANSWERERS: answerer}
        tokenizer = next((make for kinds, make in made.items() if name.startswith(kinds)), reader)()
        tokenizer.save(str(target / "tokenizer.json"))
    own = {"bos_token_id": BEGIN, "eos_token_id": BEGIN, "pad_token_id": None}
    own = own if name.startswith(WRITERS) else {}
    values = json.loads((target / "config.json").read_text()) | own | config
    (target / "config.json").write_text(json.dumps(values))
    return target


def writer() -> Tokenizer:
    """Return a tokenizer of bytes, as GPT-2's: the letters, and two pairs of them."""
    vocabulary = {"<|end|>": BEGIN, **{one: i for i, one in enumerate(_LETTERS, 1)}}
    vocabulary |= {"th": 33, "the": 34, "Ġt": 35}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("t", "h"), ("th", "e"), ("Ġ", "t")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def reader() -> Tokenizer:
    """Return a tokenizer of words, as BERT's, which puts two tokens around a text."""
    words = {"[PAD]": 0, "[UNK]": UNKNOWN, "[CLS]": CLS, "[SEP]": SEP, "the": 4, "cat": 5, "##s": 6}
    words["[MASK]"] = MASK
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[MASK]"])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    return tokenizer


def answerer() -> Tokenizer:
    """Return a tokenizer of pieces, as T5's SentencePiece: padding, end and unknown come first."""
    words = ["\u2581the", "\u2581cat", "\u2581", "s", "\u2581sits", "c", "a", "t", "."]
    scored = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    scored += [(word, -float(place)) for place, word in enumerate(words, 1)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=UNKNOWN_PIECE))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return tokenizer

"""A batch: what is a token can be read back, what is padding is masked."""

import pytest
import torch

from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.inspect.text.tokenise import batch, longest, sentences_of
from tfm_core.layers.masks import padding_mask

SENTENCES = [["a", "b", "c", "d", "e"], ["b"], ["e", "a", "b"]]


@pytest.mark.parametrize(("bos", "eos"), [(True, True), (True, False), (False, False)])
def test_every_sentence_can_be_read_back_under_its_mask(bos, eos):
    made = batch(SENTENCES, length=13, has_bos=bos, has_eos=eos)
    assert made.ids.shape == (3, longest(SENTENCES, has_bos=bos, has_eos=eos))
    for row, mask, words in zip(made.ids, made.mask, SENTENCES, strict=True):
        kept = row[mask].tolist()
        assert made.known.decode(kept) == words
        assert (kept[0] == BOS, kept[-1] == EOS) == (bos, eos)
        assert set(row[~mask].tolist()) <= {PAD}
    assert made.cut == ((), (), ())


def test_what_does_not_fit_is_cut_from_the_end_and_eos_stays_under_the_models_mask():
    made = batch(SENTENCES, length=13)
    theirs = padding_mask(torch.from_numpy(made.ids), PAD)[:, 0, 0]
    assert theirs.numpy().tolist() == made.mask.tolist()
    made = batch(SENTENCES, length=5)
    assert made.ids.shape == (3, 5)
    assert made.tokens[0] == ("<bos>", "a", "b", "c", "<eos>")
    assert made.cut == (("d", "e"), (), ())
    with pytest.raises(ValueError, match="A length of 2 leaves no room"):
        batch(SENTENCES, length=2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n \n", "at least one sentence"),
        ("a\n" * 9, "9 sentences; the limit is 8"),
        ("short\n" + "w " * 33, "Sentence 2 has 33 words; the limit is 32"),
    ],
)
def test_what_is_no_batch_is_said(text, why):
    with pytest.raises(ValueError, match=why):
        sentences_of(text)

"""One label for a text: padding changes nothing, only labels are said, all words are read."""

import pytest
import torch

from tests.models.variants import SMALL, SRC_WORDS, text_batch
from tfm_core.choices.config import EncoderOnlyConfig
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.models.build import build_text

pytestmark = pytest.mark.quick

HEADS = ("mean", "cls")
N_WORDS, N_LABELS = 7, 3


def model(head, **settings):
    torch.manual_seed(0)
    config = EncoderOnlyConfig.parse({**SMALL, **settings})
    shape = TextShape(SRC_WORDS, N_WORDS, head=head, n_labels=N_LABELS)
    return build_text(config, shape).eval()


def test_padding_changes_nothing_and_a_mean_without_positions_sees_a_bag():
    for position in POSITIONS_OF_WORDS:
        for head in HEADS:
            read = model(head, position=position)
            src, tgt = text_batch()
            padded = torch.nn.functional.pad(src, (0, 5))
            torch.testing.assert_close(read(padded, tgt), read(src, tgt), rtol=1e-5, atol=1e-5)
            alone = read(src[1:, :4], tgt[1:])
            torch.testing.assert_close(alone, read(src, tgt)[1:], rtol=1e-5, atol=1e-5)
    src, tgt = text_batch()
    read = model("mean", position="none")
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    torch.testing.assert_close(read(src[:1, order], tgt[:1]), read(src[:1], tgt[:1]))


def test_one_answer_of_the_labels_is_given_whatever_was_asked_for():
    for head in HEADS:
        src, tgt = text_batch()
        read = model(head)
        assert read(src, tgt).shape == (2, 1, N_WORDS)
        assert torch.equal(read(src, tgt), read(src, tgt[:, :1]))
    for head in HEADS:
        shares = model(head)(*text_batch()).softmax(-1)
        assert (shares[..., : N_WORDS - N_LABELS] == 0).all()
        torch.testing.assert_close(shares.sum(-1), torch.ones(2, 1))


@pytest.mark.parametrize("head", HEADS)
def test_every_word_counts_and_every_parameter_learns(head):
    src, tgt = text_batch()
    read = model(head)
    before = read(src, tgt)
    for position in range(src.size(1)):
        changed = src.clone()
        changed[0, position] = changed[0, position] % (SRC_WORDS - 4) + 4
        if changed[0, position] != src[0, position]:
            assert not torch.equal(read(changed, tgt)[0], before[0])
    before[..., -N_LABELS:].square().sum().backward()
    for name, parameter in read.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name

import pytest

from tfm_core.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary

ANIMALS = Vocabulary(("dog", "cat", "bear"))


def test_special_tokens_come_first():
    assert [ANIMALS.token(id) for id in range(4)] == list(SPECIALS)
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert len(ANIMALS) == 7


def test_decoding_undoes_encoding():
    assert ANIMALS.decode(ANIMALS.encode(["cat", "dog", "bear"])) == ["cat", "dog", "bear"]


def test_decoding_drops_padding_and_begin_and_stops_at_the_end():
    assert ANIMALS.decode([BOS, 4, PAD, 5, EOS, 6]) == ["dog", "cat"]


def test_an_unknown_token_gets_the_unknown_number():
    assert ANIMALS.id_of("zebra") == UNK
    assert "zebra" not in ANIMALS
    assert "dog" in ANIMALS


def test_the_nearest_words_are_spelled_alike():
    assert ANIMALS.nearest("beer") == ["bear"]
    assert ANIMALS.nearest("xylophone") == []


def test_a_token_may_stand_only_once():
    with pytest.raises(ValueError, match="only once in a vocabulary: dog"):
        Vocabulary(("dog", "dog"))


@pytest.mark.parametrize("id", [-1, 7])
def test_a_number_outside_the_vocabulary_has_no_token(id):
    with pytest.raises(ValueError, match="is not from 0 to 6"):
        ANIMALS.token(id)

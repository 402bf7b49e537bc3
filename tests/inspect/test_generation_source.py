"""What may come next in a sentence is what the grammar's own sentences put there."""

import pytest

from tfm_core.choices.config import CorpusTaskConfig, TextTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.text.nearest import sampled_sentences
from tfm_core.inspect.generation_source import next_words

KOREAN = text_task(TextTaskConfig.named("english-korean"))


@pytest.mark.parametrize("task", [KOREAN, text_task(CorpusTaskConfig.named("grammar"))])
def test_following_the_suggestions_makes_a_sentence_of_the_grammar(task):
    words = ()
    beginnings = {one[:n] for one in sampled_sentences(task) for n in range(len(one) + 1)}
    for _ in range(4):
        found = next_words(task, words)
        assert found
        assert len(set(found)) == len(found)
        assert all((*words, word) in beginnings for word in found)
        words = (*words, found[0])


def test_a_beginning_that_was_never_drawn_goes_on_from_its_last_words():
    begun = ("egg", "egg", "a", "teacher")
    found = next_words(KOREAN, begun)
    assert "bought" in next_words(KOREAN, ("a", "teacher"))
    assert found
    assert set(found) <= {
        one[at + 1]
        for one in sampled_sentences(KOREAN)
        for at in range(len(one) - 1)
        if one[at] == "teacher"
    }

"""A language model looked into: surprisal, the logit lens, writing, and every other view of it."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tests.models.variants import text_batch, text_model  # noqa: E402
from tests.training.test_language import language  # noqa: E402
from tests.training.test_loop import experiment  # noqa: E402
from tfm_core.data.tasks import text_task  # noqa: E402
from tfm_core.data.vocabulary import BOS, PAD  # noqa: E402
from tfm_core.decoding import SamplingConfig  # noqa: E402
from tfm_core.inspect.answers import wrong_first  # noqa: E402
from tfm_core.inspect.attention.example import (  # noqa: E402
    example_of,
    look_at_text,
)
from tfm_core.inspect.generation import next_token  # noqa: E402
from tfm_core.inspect.generation_source import source_of  # noqa: E402
from tfm_core.inspect.mask_lab import PAD_TOKEN, run_projection  # noqa: E402
from tfm_core.inspect.positions_at_work import can_extrapolate  # noqa: E402
from tfm_core.inspect.positions_at_work import shuffle_words as shuffled  # noqa: E402
from tfm_core.inspect.text.language_model import (  # noqa: E402
    answer_sum,
    example_text,
    lens_logits,
    logit_lens,
    predictions,
    read_with_lens,
    surprisals,
)
from tfm_core.probe import snapshot  # noqa: E402
from tfm_core.probe.capture import capture  # noqa: E402
from tfm_core.probe.items import LENGTH  # noqa: E402
from tfm_core.probe.labels import axes, modules_by_kind  # noqa: E402
from tfm_core.probe.types import Probe  # noqa: E402

CONTEXT = 16


@pytest.fixture(scope="module", params=["own-text", "grammar"])
def run(request, tmp_path_factory):
    found, trainer = trained(tmp_path_factory.mktemp("runs"), language(request.param))
    return found, trainer


@pytest.fixture(scope="module")
def adder(tmp_path_factory):
    chosen = experiment("decoder-only", "addition", training={"steps": 4})
    return trained(tmp_path_factory.mktemp("runs"), chosen)


@pytest.mark.parametrize("settings", [{}, {"norm_first": False}, {"position": "rotary"}])
@pytest.mark.parametrize("has_source", [True, False])
def test_the_last_row_of_the_lens_is_the_models_own_answer(settings, has_source):
    model = text_model("decoder-only", **settings).eval()
    src, tgt_in = (tensor[1:] for tensor in text_batch())  # with padding behind the source
    src, tgt_in = (src if has_source else src[:, :0]), tgt_in[:, :3]
    said = lens_logits(model, src, tgt_in)
    with capture(model, only={"logits"}):
        assert torch.equal(said[-1], model(src, tgt_in)[0])
    with torch.no_grad():  # the fast path rounds otherwise
        torch.testing.assert_close(said[-1], model(src, tgt_in)[0], atol=1e-5, rtol=1e-5)
    assert len(said) == 1 + len(model.decoder.layers)
    ids, probability, final = logit_lens(model, src, tgt_in)
    assert np.array_equal(ids, said.argmax(-1))
    assert np.array_equal(final[-1], probability[-1])
    assert (final <= probability + 1e-7).all()


def test_a_text_beyond_the_context_is_read_and_the_lens_begins_knowing_nothing():
    model = text_model("decoder-only").eval()
    ids = torch.tensor([[BOS, 5, 6, 7]])
    other = torch.tensor([[BOS, 9, 6, 7]])
    first, second = (lens_logits(model, ids[:, :0], row) for row in (ids, other))
    assert torch.equal(first[0, 2:], second[0, 2:])
    assert not torch.allclose(first[-1, 2:], second[-1, 2:])
    model = text_model("decoder-only").eval()
    ids = torch.randint(4, 19, (37,), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        found = predictions(model, ids, 8)
        assert found.shape == (37, 19)
        for position in range(37):  # it is read in a window that begins at a multiple of 4
            starts = [s for s in range(0, 37, 4) if s <= position < s + 8]
            start = starts[0]
            tgt_in = torch.cat([torch.tensor([BOS]), ids[start:position]])[None]
            wanted = model(tgt_in[:, :0], tgt_in)[0, -1]
            torch.testing.assert_close(found[position], wanted, atol=1e-5, rtol=1e-4)
            assert position - start >= min(position, 4)


def test_the_next_token_is_told_and_surprisal_is_that_of_the_model(run):
    found, trainer = run
    text = example_text(found, 12)
    read = surprisals(found, text)
    ids = torch.tensor([trainer.data.task.tgt_vocabulary._ids[token] for token in read["token"]])
    tgt_in = torch.cat([torch.tensor([BOS]), ids[:-1]])[None]
    loss = torch.nn.functional.cross_entropy(trainer.model.eval()(tgt_in[:, :0], tgt_in)[0], ids)
    assert read["nats"].mean() == pytest.approx(float(loss.detach()), rel=1e-5)
    for token, nats, rank, _entropy, best in read.itertuples(index=False):
        chances = [p for _, p in best]
        assert chances == sorted(chances, reverse=True)
        if rank <= len(best):
            assert best[rank - 1] == (token, pytest.approx(math.exp(-nats)))
    found, _trainer = run
    told, facts = next_token(source_of(found, "an"), (), SamplingConfig(0.5, 3))
    assert facts["left"] == 3
    assert (told["after"][3:] == 0).all()
    assert told["after"].sum() == pytest.approx(1, abs=1e-5)
    assert list(told["before"]) == sorted(told["before"], reverse=True)
    assert 1 <= facts["after"] < facts["before"] <= facts["all"] + 1e-3


def test_texts_that_cannot_be_read_or_shown_as_masks_get_a_sentence(run, adder):
    if run[0].experiment.task.name == "grammar":
        with pytest.raises(ValueError, match="“€”"):
            surprisals(run[0], "and €")
    else:  # a text of one's own
        assert "<unk>" in surprisals(run[0], "and €")["token"].tolist()
    with pytest.raises(ValueError, match="limit is 1,000"):
        surprisals(run[0], "and " * 300)
    with pytest.raises(ValueError, match="not a language model"):
        surprisals(adder[0], "1+1")
    with pytest.raises(ValueError, match="no padding between source and target"):
        run_projection(adder[0], "padding", ("1", PAD_TOKEN), ())
    with pytest.raises(ValueError, match="“€” is not a word"):
        run_projection(run[0], "causal", ("€",), ())


def test_prompts_and_ones_own_text_are_mapped_and_continued(run):
    found, trainer = run
    probe = snapshot.probe_of(trainer)
    taken = snapshot.take(trainer)
    unit = found.experiment.task.unit
    for i, item in enumerate(probe["items"]):
        assert item["src"] == []
        assert 1 <= item["prompt"] < len(item["tgt"])
        assert 0 < len(taken.tokens[i]) <= LENGTH[unit]
        example = example_of(found.experiment, Probe("text", probe["items"]), taken, i)
        for modules in modules_by_kind(found.experiment).values():
            for module in modules:
                assert axes(found.experiment, item, module).query == ("<bos>", *item["tgt"])
                rows = example.attention[module].astype(float).sum(-1)
                np.testing.assert_allclose(rows, 1, atol=0.02)
    found, _trainer = run
    example = look_at_text(found, "and so")
    (modules,) = modules_by_kind(found.experiment).values()
    assert example.item["tgt"] == list("and so")
    assert example.attention[modules[0]].shape[1:] == (7, 7)
    assert len(example.answer) == len(example.confidence)
    if found.experiment.task.name == "own-text":
        with pytest.raises(ValueError, match="has 18 characters, but the model sees 15"):
            look_at_text(found, "and so on, and so ")


def test_without_a_right_answer_it_is_said_and_the_lab_gets_the_scores(run):
    found, _trainer = run
    with pytest.raises(ValueError, match="no single right answer"):
        wrong_first(found)
    with pytest.raises(ValueError, match="is a language model"):
        shuffled(found, "and so")
    assert "A language model" in can_extrapolate(found.experiment)
    found, trainer = run
    words = list("and so")
    projected = run_projection(found, "combined", (*words, PAD_TOKEN), (), 0, 1)
    assert projected.query == projected.key == (*words, PAD_TOKEN)
    task = text_task(found.experiment.task)
    ids = torch.tensor([[BOS, *task.tgt_vocabulary.encode(words), PAD]])
    with capture(trainer.model, only={"scores"}) as cache:
        trainer.model(ids[:, :0], ids)
    (modules,) = modules_by_kind(found.experiment).values()
    theirs = cache[f"{modules[0]}.scores"][0, 1]
    np.testing.assert_allclose(projected.scores, theirs[1:, 1:].numpy(), atol=1e-5)


def test_a_sum_is_written_digit_by_digit(adder):
    found, trainer = adder
    _source, answer, truth, chances = answer_sum(found, "17+25")
    assert truth == ("4", "2", "<eos>")
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
    assert tuple(chances.idxmax(axis=1)) == answer
    read, says, *_shares = read_with_lens(found, "17+25")
    assert read == ("<bos>", *answer[:-1])
    assert says[-1] == answer
    assert trainer.model is not None


def test_the_lens_is_for_decoder_only_models(tmp_path):
    found, _trainer = trained(tmp_path, experiment("encoder-only", "sort"))
    with pytest.raises(ValueError, match="decoder-only model"):
        read_with_lens(found, "3 1 2")

"""What a model writes step by step is what it says of itself, in every family that writes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tests.inspect.constructed import small, text_experiment  # noqa: E402
from tests.training.test_language import language  # noqa: E402
from tests.training.test_loop import experiment  # noqa: E402
from tfm_core.data.vocabulary import BOS, EOS  # noqa: E402
from tfm_core.decoding import SamplingConfig, greedy  # noqa: E402
from tfm_core.inspect import generation  # noqa: E402
from tfm_core.inspect.attention.maps import head_map  # noqa: E402
from tfm_core.inspect.attention.trained import data_of  # noqa: E402
from tfm_core.inspect.generation import compare_with_truth, first_error  # noqa: E402
from tfm_core.inspect.generation_source import can_write, continuing, picture_source, source_of  # noqa: E402

GREEDY = SamplingConfig(temperature=0)
FAMILIES = ("encoder-decoder", "decoder-only", "recurrent", "captioner", "language")


def made(family, folder):
    """Return a source of a small model of a family."""
    if family == "captioner":
        chosen = experiment("captioner", "captions", model={"n_decoder_layers": 2})
        run, _trainer = trained(folder, chosen)
        test = data_of(run.experiment).test
        picture = test.pictures(torch.tensor([5]))[0].numpy()
        return picture_source(run, picture, test.captions[5].words)
    if family == "language":
        run, _trainer = trained(folder, language("grammar"))
        return source_of(run, "an")
    run, _trainer = trained(folder, small(text_experiment(family)))
    return source_of(run, "forty two")


@pytest.fixture(scope="module", params=FAMILIES)
def source(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def at_once(tmp_path_factory):
    run, _trainer = trained(tmp_path_factory.mktemp("runs"), small(text_experiment("encoder-only")))
    return source_of(run, "forty two")


def logits_after(source, ids):
    """What the model says comes next, in one pass of its own."""
    with torch.no_grad():
        row = torch.tensor([[BOS, *source.prompt, *ids]])
        found = source.model(source.src, row)[0, -1].double()
    found[list(source.never)] = -torch.inf
    return found


def test_steps_tell_the_models_probabilities_and_write_as_decoding_does(source):
    writing = generation.write(source, GREEDY, n=6)
    ids = []
    for token in writing.tokens:
        chances = logits_after(source, ids).softmax(-1)
        ordered = chances.argsort(descending=True, stable=True).tolist()
        assert token.own.id == ordered[0]
        assert token.rank == 1
        assert not token.is_forced
        for one in token.best:
            assert one.chance == pytest.approx(float(chances[one.id]), abs=1e-5)
        told = [one.chance for one in token.best]
        assert told == sorted(told, reverse=True)
        ids.append(token.own.id)
    assert writing.score == pytest.approx(sum(np.log([t.own.chance for t in writing.tokens])))
    if source.context:
        pytest.skip("it goes on with a prompt, and never writes what is unknown")
    found = greedy(source.model, source.src, max_len=5).ids[0].tolist()
    if set(found) & set(source.never):
        pytest.skip("this untrained model would write a token that is never written")
    written = [token.own.id for token in generation.write(source, GREEDY, n=5).tokens]
    assert written == found[: len(written)]
    writing = generation.write(source, GREEDY, n=5)
    n_layers, n_heads, n_steps, n_keys = writing.attention.shape
    assert (n_steps, n_keys) == (len(writing.tokens), len(writing.keys))
    np.testing.assert_allclose(writing.attention.sum(-1), 1, atol=1e-4)
    for place in range(n_steps):  # nothing that is not there yet
        assert (writing.attention[:, :, place, writing.n_read + place :] == 0).all()
    mean = head_map(writing.attention, n_layers - 1)
    np.testing.assert_allclose(mean, writing.attention[-1].mean(0))
    np.testing.assert_array_equal(
        head_map(writing.attention, 0, n_heads - 1), writing.attention[0, -1]
    )


def test_a_forced_token_changes_what_follows_and_an_unwritten_one_is_refused(source):
    free = generation.write(source, GREEDY, n=5)
    at = next(n for n in (3, 2) if free.tokens[0].best[n].id != EOS)
    forced = generation.write(source, GREEDY, n=5, forced={0: free.tokens[0].best[at].id})
    first, second = forced.tokens[:2]
    assert first.is_forced
    assert first.own.id == free.tokens[0].best[at].id
    assert first.rank == at + 1
    assert [one.id for one in first.best] == [one.id for one in free.tokens[0].best]
    assert not second.is_forced
    assert second.own.id == int(logits_after(source, [first.own.id]).argmax())
    for id in (BOS, len(source.vocabulary)):
        with pytest.raises(ValueError, match=f"Token {id} can.t be written"):
            generation.write(source, GREEDY, n=3, forced={0: id})


def test_one_seed_draws_one_text_and_the_truth_stands_beside(source):
    hot = SamplingConfig(1.5, top_k=5)
    first, again = (generation.write(source, hot, seed=3, n=6) for _ in range(2))
    assert first.words == again.words
    others = {generation.write(source, hot, seed=seed, n=6).words for seed in range(8)}
    assert len(others) > 1
    for token in first.tokens:
        assert token.own.drawn > 0
        assert token.n_left == 5
        assert sum(one.drawn > 0 for one in token.best) == 5
    writing = generation.write(source, GREEDY)
    found = compare_with_truth(writing)
    if source.truth is None:
        assert found is None
        return
    ids = [*source.vocabulary.encode(source.truth), EOS]
    places, _score = found
    for place, id in enumerate(ids):
        chances = logits_after(source, ids[:place]).softmax(-1)
        said = places.iloc[place]
        assert said["truth_chance"] == pytest.approx(float(chances[id]), abs=1e-5)
        assert said["taught"] == source.vocabulary.token(int(chances.argmax()))
    for one in places[: first_error(places)].itertuples():  # up to there both read the same
        assert one.free == one.taught == one.truth
    assert places["truth"].notna().sum() == len(ids)


def test_an_encoder_writes_every_place_by_itself(at_once):
    free = generation.write(at_once, GREEDY)
    assert free.words == at_once.tokens_of(
        greedy(at_once.model, at_once.src, max_len=at_once.longest).ids[0].tolist()
    )
    other = next(one.id for one in free.tokens[0].best[1:] if one.id != EOS)
    forced = generation.write(at_once, GREEDY, forced={0: other})
    assert forced.tokens[0].own.id == other
    for one, same in zip(forced.tokens[1:], free.tokens[1:], strict=False):
        assert one.own.id == same.own.id


def test_what_writes_no_text_and_a_prompt_that_fills_the_context_say_so(tmp_path):
    from tests.inspect.constructed import vit_experiment

    run, _trainer = trained(tmp_path, small(vit_experiment("mean")))
    assert not can_write(run.experiment)
    with pytest.raises(ValueError, match="does not turn sentences into text"):
        source_of(run, "one")
    with pytest.raises(ValueError, match="does not describe pictures"):
        picture_source(run, np.zeros((1, 49, 49), np.uint8), ())
    run, _trainer = trained(tmp_path, language("grammar"))
    longest = run.experiment.task.max_tgt_len
    assert continuing(run, (5,) * longest).longest == 1
    with pytest.raises(ValueError, match=f"sees {longest} after <bos>"):
        continuing(run, (5,) * (longest + 1))

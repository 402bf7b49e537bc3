"""Links to share: short, versioned, and the same experiment at the other end."""

from dataclasses import replace
from urllib.parse import urlencode

from hypothesis import assume, given
from hypothesis import strategies as st

from pages.app.settings import drafts
from pages.app.settings.drafts import Draft
from pages.app.settings.fields import every_setting
from tfm_core import links, made_with
from tfm_core.choices.config import FAMILIES, ConfigError, Experiment, tasks_for, to_query
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.presets import PRESETS
from tfm_core.made_with import MadeWith
from tfm_core.training.events import Step
from tfm_core.training.loop import build, train

HERE = MadeWith("0.1.0", "2.13.0", "cpu", "x86_64")
KINDS = [(family, task) for family in FAMILIES for task in tasks_for(family)]


def link(values, preset=None):
    return links.to_link(values, made=HERE, preset=preset)


def opened(query):
    values, sentences = drafts.draft_of_link(query)
    assert not sentences
    return values


@st.composite
def experiments(draw) -> Experiment:
    """A valid experiment of any family and task, some of whose settings were changed."""
    family, task = draw(st.sampled_from(KINDS))
    values = default_sections(family, task)
    known = every_setting(family, task)
    for path in draw(st.lists(st.sampled_from(sorted(known)), max_size=9, unique=True)):
        one = known[path]
        if one.kind == "choice":
            value = draw(st.sampled_from(sorted(one.choices)))
        elif one.kind == "bool":
            value = draw(st.booleans())
        else:
            low, high = one.lowest or 0, one.highest or 512
            numbers = st.integers if one.kind == "int" else st.floats
            value = draw(numbers(low, high))
        values = drafts.chosen(values, path, value)
    try:
        return Experiment.parse(values)
    except ConfigError:
        assume(False)
        raise


def test_a_preset_is_named_and_only_what_differs_from_it_is_said() -> None:
    for name, preset in PRESETS.items():
        values = preset.experiment.model_dump()
        query = link(values)
        assert query["v"] == "1"
        assert not [key for key in query if "." in key]
        assert len(urlencode(query)) < 90
        assert drafts.differences(opened(query), values) == []
        assert drafts.preset_of(Draft(opened(query), base=drafts.link_base(query))) == name
    values = PRESETS["translate"].experiment.model_dump()
    values["model"]["n_heads"] = 8
    values["training"]["optimizer"] = "adam"
    values["training"]["weight_decay"] = 0.0  # its own
    query = link(values, "translate")
    said = {key: text for key, text in query.items() if "." in key}
    assert said == {"model.n_heads": "8", "training.optimizer": "adam"}
    assert drafts.differences(opened(query), values) == []


@given(experiments(), st.none() | st.sampled_from(sorted(PRESETS)))
def test_any_valid_experiment_comes_out_as_it_went_in(experiment, preset) -> None:
    values = experiment.model_dump()
    query = link(values, preset)
    assert drafts.differences(opened(query), values) == []
    plain = to_query(experiment)  # as links said it before they had a version
    assert drafts.differences(opened(plain), values) == []
    if preset is None:
        assert len(urlencode(query)) <= len(urlencode({"v": 1, **plain, "made": str(HERE)}))


def test_presets_give_way_to_families_and_changes_since_are_said() -> None:
    query = link(PRESETS["copy"].experiment.model_dump())
    query["preset"] = "copy~zzzz"
    values, (sentence,) = drafts.draft_of_link(query)
    assert "“Copy a sequence” has changed" in sentence
    assert values == PRESETS["copy"].experiment.model_dump()
    values, sentences = drafts.draft_of_link({"preset": "copy", "model.family": "vit"})
    assert not sentences
    assert values["model"]["family"] == "vit"


def test_a_link_that_is_newer_or_wrong_is_answered_in_a_sentence() -> None:
    for query, sentence in [
        ({"v": "2"}, "newer app made this link"),
        ({"v": "99999999999999999999"}, "newer app made this link"),
        ({"v": "one"}, "“one” isn't a whole number"),
        ({"v": "0"}, "“0” isn't a whole number"),
        ({"preset": "chess"}, "There is no preset “chess”"),
        ({"preset": ""}, "There is no preset “”"),
        ({"made": "by hand"}, "unreadable"),
    ]:
        values, sentences = drafts.draft_of_link(
            {"task.name": "copy", "model.n_layers": "3", **query}
        )
        assert sentence in " ".join(sentences)
        assert drafts.check(Draft(values)).experiment is not None
        good, few = drafts.draft_of_link({"preset": "copy", "model.d_model": "32", **query})
        assert sentence in " ".join(few)
        if "preset" not in query:
            assert good["model"]["d_model"] == 32


def test_what_it_was_made_with_is_read_as_it_was_said() -> None:
    for ours in (
        made_with.made_here(),
        made_with.made_here("cpu", 4),
        made_with.made_here("cuda:1"),
        HERE,
    ):
        assert made_with.read(str(ours)) == ours
    assert made_with.made_here("cpu", 4).device == "cpu4"
    for text in ("", "0.1.0", "a-b-tpu-c", "0.1.0-2.13.0-cpu-x86_64-more", "x" * 500):
        assert made_with.read(text) is None


def test_why_a_curve_may_differ_is_said_in_one_sentence() -> None:
    for change, words in [
        ({"torch": "2.11.1"}, "PyTorch 2.11.1 (here 2.13.0)"),
        ({"device": "cuda"}, "a CUDA GPU (here the CPU)"),
        ({"device": "cpu4"}, "4 CPU threads (here the CPU)"),
        ({"machine": "aarch64"}, "aarch64 processor (here x86_64)"),
        ({"app": "0.0.9"}, "app version 0.0.9 (here 0.1.0)"),
    ]:
        sentence = made_with.why_curves_differ(replace(HERE, **change), HERE)
        assert words in sentence
        assert ("The app has changed" in sentence) == ("app" in change)
        assert made_with.why_curves_differ(HERE, HERE) is None
    sentence = made_with.why_curves_differ(replace(HERE, torch="3.0", device="mps"), HERE)
    assert "PyTorch 3.0 (here 2.13.0), MPS (here the CPU)" in sentence


def test_whoever_opens_a_link_trains_the_same_curve() -> None:
    small = {"n_train": 40, "n_validation": 8, "n_test": 8}
    mine = PRESETS["reverse"].experiment.model_dump()
    mine["task"] |= small
    mine["model"] |= {"d_model": 16, "n_heads": 2, "d_ff": 24, "dropout": 0.1}
    mine["training"] |= {"steps": 7, "batch_size": 8, "validate_every": 3}
    mine["seed"] = 11
    theirs = opened(link(mine, "reverse"))
    assert curve(mine) == curve(theirs)
    assert curve(mine) != curve({**mine, "seed": 12})


def curve(values) -> list[tuple[int, float, float]]:
    events = train(build(Experiment.parse(values)))
    return [(e.step, e.loss, e.grad_norm) for e in events if isinstance(e, Step)]

"""What a page shows is in its address: every view, there and back, and its link opens it again."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from benchmarks.linked_views import VIEWS
from pages.architecture.link import BuildView, ParametersView
from pages.attention import selection_link
from pages.attention.selection_link import Example, Selection, SnapshotStep
from pages.before.link import BeforeView
from pages.by_hand.link import ByHandView
from pages.compare.link import CompareView
from pages.draw.board import DrawView
from pages.encoders.run import EncodersView
from pages.experiments.opened import ExperimentsView
from pages.find_the_bug.pair import FindTheBugView
from pages.gpt.run import GptView
from pages.i18n import PAGES_DIR
from pages.knockouts.link import KnockoutsView
from pages.masks.link import MasksView
from pages.own_data.state import OwnDataView
from pages.positions.link import PositionsView
from pages.practice.steps import PracticeView
from pages.speed.controls import SpeedView
from pages.tensors.link import OPERATION, PARAMETERS, TensorsView
from pages.training_step.state import TrainingStepView
from pages.translate.link import TranslateView
from pages.ui.address import view_link
from pages.ui.address.parameters import Choice, Choices, Flag, Number, Option, Parameter, Text
from pages.ui.navigation.page_table import PAGES, PageFacts
from pages.walk.link import WalkView
from pages.words.link import WordsView
from tests.pages.opening import links, opened_at
from tfm_core.inspect.notebook.model import your_model
from tfm_core.runs.store import RECORDED, RunStore

Query = dict[str, str]
WITH_VIEW = [page for page in PAGES.values() if page.name in VIEWS]
LETTERS = "ab7 .,;:-_+%&=?#/“가é\n\\"  # what a link writes in another way, and what it does not
KOREAN, DIGITS = {"run": "recorded-korean"}, {"run": "recorded-digits"}
FITTING = {  # a run says which there are
    Selection: {
        "kind": replace(selection_link.KIND, names=("cross", "decoder"), first="cross"),
        "step": replace(selection_link.STEP, steps=(0, 2, 11)),
        "patch": replace(selection_link.PATCH, names=("mean", "2,3")),
    }
}
POSITION = st.integers(0, selection_link.MAX_TOKENS - 1)
CODES = ["encoder.1.self.2", "decoder.2.ff.norm", "decoder.positions", "decoder.3"]
NOTATIONS = {
    "off": st.none() | st.lists(st.sampled_from(CODES), unique=True).map(tuple),
    "out": st.lists(st.sampled_from(CODES), unique=True).map(tuple),
    "runs": st.lists(st.sampled_from(["recorded-digits", "a1B2c3D4", "x_-" * 3]), unique=True).map(
        tuple
    ),
    "cell": st.none() | st.tuples(POSITION, POSITION),
    "pin": st.none() | st.tuples(st.sampled_from("qk"), POSITION),
    "pair": st.sampled_from([("recorded-many-heads", "recorded-one-head"), ("a1B2", "c_3-D")]),
    "digit": st.sampled_from(["0", "9", "picture-eJw"]),
    "walk-digit": st.sampled_from(["", "picture-eJw"]),
    "forced": st.dictionaries(st.integers(0, 99), st.integers(0, 999), max_size=3).map(
        lambda pairs: tuple(pairs.items())
    ),
    "head": st.none() | st.tuples(st.integers(0, 98), st.integers(-1, 98)),
    "own": st.sampled_from(["", "picture-eJw", "test-7", "validation-13"]),
}


def values_of(parameter: Parameter[Any]) -> st.SearchStrategy[Any]:
    """Return the values that a parameter can have."""
    match parameter:
        case Choice():
            return st.sampled_from(sorted({*parameter.names, parameter.first}))
        case Choices():
            return st.lists(
                st.sampled_from(parameter.names), unique=True, max_size=parameter.maximum
            ).map(tuple)
        case Number():
            return st.integers(parameter.low, parameter.high)
        case Option():
            return st.sampled_from(parameter.options)
        case Flag():
            return st.booleans()
        case Text():
            return st.text(LETTERS, max_size=min(parameter.most, 20))
        case Example():
            return st.none() | st.integers(0, parameter.count - 1)
        case SnapshotStep():
            return st.none() | st.sampled_from(parameter.steps)
    return NOTATIONS[parameter.query]


@settings(deadline=None)
@given(data=st.data())
def test_every_view_comes_back_from_its_link(data: st.DataObject) -> None:
    for page in WITH_VIEW:
        kind = VIEWS[page.name]
        fitting: dict[str, Parameter[Any]] = FITTING.get(kind, {})
        parameters = view_link.parameters(kind) | fitting
        changed = data.draw(st.lists(st.sampled_from(sorted(parameters)), unique=True, max_size=13))
        view = kind(
            **{
                name: data.draw(values_of(parameter)) if name in changed else parameter.first
                for name, parameter in parameters.items()
            }
        )
        link = urlencode(view_link.write(view))
        query = dict(parse_qsl(link, keep_blank_values=True))
        assert view_link.read(kind, query, **fitting) == (view, ())


@settings(deadline=None)
@given(text=st.text(LETTERS, max_size=50), data=st.data())
def test_any_link_at_all_opens_a_view(text: str, data: st.DataObject) -> None:
    for page in WITH_VIEW:
        kind = VIEWS[page.name]
        fitting: dict[str, Parameter[Any]] = FITTING.get(kind, {})
        parameters = view_link.parameters(kind) | fitting
        name = data.draw(st.sampled_from(sorted(parameters)))
        view, sentences = view_link.read(kind, {parameters[name].query: text}, **fitting)
        usual = {other: one.first for other, one in parameters.items()}
        if sentences:  # it says what is wrong, and shows what there is
            (sentence,) = sentences
            assert f"{parameters[name].query} is “{text[:20]}” in the link" in sentence
        assert dataclasses.asdict(view) == usual | {name: getattr(view, name)}
        assert view_link.read(kind, view_link.write(view), **fitting) == (view, ())


def test_every_page_with_a_link_has_its_view_in_the_table_of_these_tests() -> None:
    linked = {
        path.parent.name
        for path in PAGES_DIR.glob("*/*.py")
        if "linked(" in path.read_text(encoding="utf-8")
    } - {"ui"}
    assert linked == {PAGES[name].file.split("/")[0] for name in VIEWS}


def test_a_view_is_frozen_and_all_of_it_stands_in_the_address() -> None:
    for page in WITH_VIEW:
        kind = VIEWS[page.name]
        assert kind.__dataclass_params__.frozen
        parameters = view_link.parameters(kind)
        assert set(parameters) == {field.name for field in dataclasses.fields(kind)}
        queries = [parameter.query for parameter in parameters.values()]
        assert len(set(queries)) == len(queries)


def of_operation(name: str) -> Any:
    """Return a view of an operation of which everything was changed; some of it may not fit."""
    values = {"operation": name}
    for parameter in PARAMETERS[name].values():
        other = f"{parameter.first} " if isinstance(parameter, Text) else parameter.names[-1]
        if not parameter.query.endswith(("-content", "-numbers")):
            values[parameter.query.replace("-", "_")] = other
    return TensorsView(**values)


OWN_NUMBERS = TensorsView(
    operation="transpose", transpose_content="own", transpose_numbers="5 5 7, 0.5, -1, 2"
)
SIZES = {"src_vocabulary": 500, "tgt_vocabulary": 600, "src_len": 9, "tgt_len": 11}
NOTEBOOK = your_model("d_model = 24, num_heads = 3, num_layers = 2, vocab_size = 50").sizes
PAIR = {"model.family": "encoder-decoder"}
SHOWN: list[tuple[str, Any, Query]] = [
    (
        "compare",
        CompareView(
            runs=("recorded-additive", "recorded-many-heads"), metrics=("sequences", "gradient"),
            axis="clock", window=50, log_x=True, log_y=True, kind="decoder", example=1, at=0,
        ),
        {},
    ),
    (
        "knockouts",
        KnockoutsView(
            off=("decoder.3.cross.4", "encoder.positions"), how="mean", all=True, example=1,
            view="pruning", drawn="loss",
        ),
        KOREAN,
    ),
    (
        "knockouts",
        KnockoutsView(
            off=(), view="causes", text="A cat saw a dog.", changed="A rabbit saw a dog."
        ),
        KOREAN,
    ),
    (
        "knockouts",
        KnockoutsView(off=(), view="causes", other=3),
        {"run": "recorded-digits"},
    ),
    (
        "knockouts",
        KnockoutsView(
            off=("decoder.3.cross",), how="even", view="pattern", head="decoder.2.cross.1",
            pattern="previous",
        ),
        KOREAN,
    ),
    ("experiments", ExperimentsView("no-positions"), {}),
    (
        "translate",
        TranslateView("sample", "The cat sees a dog.", weights=137, at=2, forced=((1, 9),),
                      head=(1, -1), temperature=0.7, top_k=5, top_p=0.9, seed=3),
        KOREAN,
    ),
    ("translate", TranslateView("beam", "The cat sees a dog.", width=2, penalty=0.6), KOREAN),
    ("translate", TranslateView(picture=3), {"run": "recorded-captions"}),
    ("translate", TranslateView(text="a", length=7), {"run": "recorded-grammar"}),
    ("positions", PositionsView("rotary"), {}),
    ("before", BeforeView("length"), {}),
    ("draw", DrawView("7"), DIGITS),
    ("encoders", EncodersView("blanks"), {"run": "recorded-masked-words"}),
    ("find-the-bug", FindTheBugView(level="3"), {}),
    ("gpt", GptView("train"), {}),
    ("practice", PracticeView("split"), {}),
    ("practice", PracticeView("save"), {}),
    ("own-data", OwnDataView(set="example-shapes"), {}),
    ("own-data", OwnDataView("pairs"), {}),
    ("own-data", OwnDataView("labels"), {}),
    ("own-data", OwnDataView("text"), {}),
    ("masks", MasksView("causal"), {}),
    ("words", WordsView(cut="byte", corpus="korean"), {}),
    ("words", WordsView(view="moving", table="tgt_embedding", dimensions="3"), KOREAN),
    ("build", BuildView("gpt2-small", names="hugging-face"), {}),
    ("parameters", ParametersView("gpt2-small", versus="vit-b", names="transformer-lens"), {}),
    ("parameters", ParametersView("mixtral-8x7b", tab="experts"), {}),
    ("build", BuildView(**SIZES), PAIR),
    ("parameters", ParametersView(**SIZES), PAIR),
    ("walk", WalkView(**SIZES), PAIR),
    *(
        (name, view(show="notebook", notebook=NOTEBOOK), {})
        for name, view in (("build", BuildView), ("parameters", ParametersView), ("walk", WalkView))
    ),
    ("training-step", TrainingStepView(stage="loss"), {}),
    ("training-step", TrainingStepView(show="run", stage="update", weights="last"), KOREAN),
    ("speed", SpeedView(show="gpt2-small", compare="data"), {}),
    ("walk", WalkView(source="book", step="scores", position="sinusoidal"), {}),
    ("walk", WalkView(show="bert-base", block=6, names="notebook"), {}),
    *[("tensors", of_operation(name), {}) for name in ("transpose", "matmul", "broadcast")],
    ("tensors", OWN_NUMBERS, {}),
    (
        "by-hand",
        ByHandView(
            words="old tree", one_width=2, mask="causal", is_scaled=False, turned="1-2",
            vectors="1,2;0.5,-1", at="1-2-2",
        ),
        {},
    ),
    (
        "by-hand",
        ByHandView(
            stage="projections", one_width=2, seed=7, wq="0,1;1,0", wk="1,1;0,1", wv="2,0;0,1",
            rate=0.3, learned=5, wanted=("1-3", "2-2"),
        ),
        {},
    ),
    ("by-hand", ByHandView(stage="heads", heads_width=2, wo="2,-0.5;0.25,1", head="2"), {}),
    ("by-hand", ByHandView(stage="heads", n_heads_of_4=4, head="3"), {}),
    ("by-hand", ByHandView(stage="forms", heads_width=6, n_heads_of_6=3, form="torch"), {}),
    (
        "attention",
        Selection(
            kind="decoder", head=1, example=1, step=0, view="lines", pin=("q", 1),
            deeper="compare", versus="1.1.0.",
        ),
        KOREAN,
    ),
    ("attention", Selection(kind="cross", view="arithmetic", cell=(1, 0), rows="read"), KOREAN),
    ("attention", Selection(kind="patches", layer=1, patch="2,3", small="matrix"), DIGITS),
]  # fmt: skip
ELSEWHERE = {  # tests/pages opens these, with what they need
    ("speed", "notebook"),
    ("training-step", "notebook"),
    ("walk", "digit"),
    ("walk", "out"),
    ("walk", "text"),
    ("walk", "weights"),
    ("attention", "text"),
    ("attention", "own"),
    ("compare", "bands"),
    *(("mistakes", field) for field in ("step", "show", "by", "order", "cell")),
    ("find-the-bug", "pair"),
    ("sweeps", "sweep"),
    *(("class", field) for field in ("view", "lesson")),
}


@pytest.fixture
def recorded(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded runs, besides those of the store."""
    monkeypatch.setattr(store, "recorded", RECORDED)


def drawn(app: AppTest) -> list[tuple[str, str, str]]:
    """Return what stands on the page: kind, key and value of everything."""
    every = [app.title, app.header, app.markdown, app.caption, app.code, app.error, app.info]
    widgets = [
        app.selectbox, app.text_input, app.toggle, app.slider, app.button_group, app.multiselect,
        app.number_input, app.select_slider, app.metric,
    ]  # fmt: skip
    return [
        (one.type, str(getattr(one, "key", None)), str(one.value))
        for group in (*every, *widgets)
        for one in group
    ]


@pytest.mark.core(12)
@pytest.mark.parametrize(("name", "view", "besides"), SHOWN, ids=lambda value: str(value)[:60])
def test_the_link_that_a_page_offers_opens_the_same_view(
    recorded: None, name: str, view: Any, besides: Query
) -> None:
    asked = view_link.write(view)
    app = opened_at(PAGES[name].file, **besides, **asked)
    assert not app.exception
    assert not [one for one in app.warning if one.icon == ":material/link_off:"]
    link = urlsplit(links(app)[0])
    assert link.path == f"/{PAGES[name].url_path}"
    query = dict(parse_qsl(link.query, keep_blank_values=True))
    assert query.items() >= asked.items()
    again = opened_at(PAGES[name].file, **query)
    assert drawn(again) == drawn(app)
    assert urlsplit(links(again)[0]) == link


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("build", {"show": "no-such-model"}),
        ("parameters", {"versus": "no-such-model"}),
        ("walk", {"show": "no-such-model"}),
        ("words", {"corpus": "no-such-corpus"}),
        ("tensors", {"view-dtype": "float7"}),
    ],
)
def test_what_a_link_has_wrong_is_said_outside_what_is_folded(
    recorded: None, name: str, query: Query
) -> None:
    app = opened_at(PAGES[name].file, **query)
    assert [one for one in app.warning if one.icon == ":material/link_off:"]
    folded = app.get("popover")
    assert folded
    assert not [one for popover in folded for one in popover.warning]


def test_every_value_of_every_view_is_opened_once() -> None:
    changed = {
        (name, field)
        for name, view, _besides in SHOWN
        for field, parameter in view_link.parameters(type(view)).items()
        if getattr(view, field) != parameter.first
    }
    every = {(page.name, field) for page in WITH_VIEW for field in fields_of(page)}
    assert every - changed - ELSEWHERE == set()


def fields_of(page: PageFacts) -> list[str]:
    """Return the fields of a page's view; one of the tensors' operations stands for all of them."""
    kind = VIEWS[page.name]
    if kind is not TensorsView:
        return list(view_link.parameters(kind))
    opened = {OPERATION.query, *(one.query for one in PARAMETERS["transpose"].values())}
    return [name for name, one in view_link.parameters(kind).items() if one.query in opened]

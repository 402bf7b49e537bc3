"""What a page shows is in its address: every value, there and back, and its link opens it again."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.app.address.parameters import Choice, Choices, Flag, Number, Option, Parameter, Text
from pages.app.navigation.page_table import PAGES
from pages.i18n import PAGES_DIR
from pages.learn.challenges import find
from pages.look_inside.attention.deeper import Versus
from tests.pages.linked_views import PARAMETERS, fields_of_operation
from tests.pages.opening import links, opened_at
from tfm_core.inspect.notebook import your_model
from tfm_core.inspect.tensors.operations import OPERATIONS

Query = dict[str, str]
LETTERS = "ab7 .,;:-_+%&=?#/“가é\n\\"  # what a link writes in another way, and what it does not
KOREAN, DIGITS = {"run": "recorded-korean"}, {"run": "recorded-digits"}
EVERY = [one for of_page in PARAMETERS.values() for one in of_page.values()]
POSITION = st.integers(0, 9998)
CODES = ["encoder.1.self.2", "decoder.2.ff.norm", "decoder.positions", "decoder.3"]
NOTATIONS = {
    "off": st.lists(st.sampled_from(CODES), unique=True).map(tuple),
    "out": st.lists(st.sampled_from(CODES), unique=True).map(tuple),
    "runs": st.lists(st.sampled_from(["recorded-digits", "a1B2c3D4", "x_-" * 3]), unique=True).map(
        tuple
    ),
    "tokens": st.none() | st.tuples(POSITION, POSITION).map(lambda two: (min(two), max(two) + 1)),
    "cell": st.none() | st.tuples(POSITION, POSITION),
    "pin": st.none() | st.tuples(st.sampled_from("qk"), POSITION),
    "pair": st.sampled_from([*find.READY.values()]),
    "digit": st.sampled_from(["0", "9", "picture-eJw"]),
    "walk-digit": st.sampled_from(["", "picture-eJw"]),
    "forced": st.dictionaries(st.integers(0, 99), st.integers(0, 999), max_size=3).map(
        lambda pairs: tuple(pairs.items())
    ),
    "versus": st.none()
    | st.builds(
        Versus,
        POSITION,
        POSITION,
        st.none() | POSITION,
        st.none() | st.sampled_from(["recorded-digits", "a1B2c3D4"]),
    ),
    "own": st.sampled_from(["", "picture-eJw", "test-7", "validation-13"]),
}


def values_of(parameter: Parameter[Any]) -> st.SearchStrategy[Any]:
    """Return the values that a parameter can have."""
    match parameter:
        case Choice():
            return st.sampled_from(sorted({*parameter.names, parameter.first}))
        case Choices() if parameter.names:
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
    return NOTATIONS[parameter.query]


@given(data=st.data())
def test_every_value_comes_back_from_its_link(data):
    for parameter in EVERY:
        value = data.draw(values_of(parameter))
        if parameter.in_url(value):
            link = urlencode({parameter.query: parameter.text(value)})
            query = dict(parse_qsl(link, keep_blank_values=True))
            assert parameter.follow(query[parameter.query], parameter.first) == (value, "")


@given(text=st.text(LETTERS, max_size=50))
def test_any_link_at_all_opens_a_page(text):
    for parameter in EVERY:
        value, sentence = parameter.follow(text, parameter.first)
        if sentence:  # it says what is wrong, and shows what there is
            assert f"{parameter.query} is “{text[:20]}” in the link" in sentence
        if parameter.in_url(value):
            assert parameter.follow(parameter.text(value), parameter.first) == (value, "")


def test_every_page_whose_link_has_parameters_is_in_the_table_of_these_tests():
    files = {page.file: name for name, page in PAGES.items()}
    folders = {page.file.rpartition("/")[0]: name for name, page in PAGES.items()}
    for path in PAGES_DIR.glob("*/**/*.py"):
        text = path.read_text("utf-8")
        if "app" in path.parts or not re.search(LINKED, text):
            continue
        place = path.relative_to(PAGES_DIR)
        name = files.get(str(place)) or folders.get(str(place.parent))
        assert name in PARAMETERS, path


LINKED = r"address(\.| import )parameters|\bview\.ask\("


SIZES = {"src_vocabulary": "500", "tgt_vocabulary": "600", "src_len": "9", "tgt_len": "11"}
NOTEBOOK = PARAMETERS["build"]["notebook"].text(
    your_model("d_model = 24, num_heads = 3, num_layers = 2, vocab_size = 50").sizes
)
PAIR = {"model.family": "encoder-decoder"}
SHOWN: list[tuple[str, Query, Query]] = [
    (
        "compare",
        {
            "runs": "recorded-additive,recorded-many-heads",
            "metrics": "sequences,gradient",
            "axis": "clock",
            "smooth": "50",
            "log-x": "true",
            "log-y": "true",
            "kind": "decoder",
            "example": "2",
            "at": "0",
        },
        {},
    ),
    (
        "knockouts",
        {
            "off": "decoder.3.cross.4,encoder.positions",
            "how": "mean",
            "all": "true",
            "example": "2",
            "view": "pruning",
            "drawn": "loss",
        },
        KOREAN,
    ),
    (
        "knockouts",
        {
            "off": "none",
            "view": "causes",
            "text": "A cat saw a dog.",
            "changed": "A rabbit saw a dog.",
        },
        KOREAN,
    ),
    ("knockouts", {"off": "none", "view": "causes", "other": "4"}, DIGITS),
    (
        "knockouts",
        {"off": "none", "map-kind": "decoder", "map-layer": "2", "map-head": "3"},
        KOREAN,
    ),
    (
        "knockouts",
        {
            "off": "decoder.3.cross",
            "how": "even",
            "view": "pattern",
            "head": "decoder.2.cross.1",
            "pattern": "previous",
        },
        KOREAN,
    ),
    ("challenges", {"experiment": "no-positions"}, {}),
    (
        "try",
        {
            "view": "write",
            "method": "sample",
            "text": "The cat sees a dog.",
            "step": "137",
            "at": "2",
            "forced": "2-9",
            "head": "2",
            "temperature": "0.7",
            "top-k": "5",
            "top-p": "0.9",
            "seed": "3",
        },
        KOREAN,
    ),
    (
        "try",
        {"method": "beam", "text": "The cat sees a dog.", "width": "2", "penalty": "0.6"},
        KOREAN,
    ),
    ("try", {"view": "write", "text": "a", "length": "7"}, {"run": "recorded-grammar"}),
    ("positions", {"d-model": "32", "base": "100", "length": "64", "pair": "3", "row": "5"}, {}),
    ("positions", {"view": "rotary"}, {}),
    ("positions", {"view": "rotary", "d-head": "32", "turned": "9"}, {}),
    ("positions", {"view": "patches", "side": "3", "patch": "1,2"}, {}),
    ("positions", {"view": "alibi", "heads": "4"}, {}),
    ("before", {"figure": "length"}, {}),
    ("before", {"task": "reverse", "steps": "300"}, {}),
    ("try", {"view": "draw", "digit": "7"}, DIGITS),
    ("try", {"view": "patches"}, DIGITS),
    ("try", {"view": "sentiment", "text": "The film was very good."}, {}),
    ("try", {"view": "blanks"}, {"run": "recorded-masked-words"}),
    ("challenges", {"bug": "2", "evidence": "maps", "kind": "decoder"}, {}),
    ("try", {"view": "train", "unit": "words"}, {}),
    (
        "try",
        {
            "view": "continue",
            "text": "the dog",
            "length": "7",
            "samples": "3",
            "seed": "3",
            "temperature": "0.7",
            "top-k": "5",
            "top-p": "0.9",
        },
        {},
    ),
    (
        "try",
        {"view": "continue", "method": "beam", "width": "2", "penalty": "0.6", "after": "2"},
        {},
    ),
    ("try", {"view": "read", "text": "the dog sees a cat", "at": "4"}, {}),
    ("try", {"view": "lens", "text": "the dog"}, {}),
    ("try", {"view": "add", "text": "12+34"}, {}),
    (
        "try",
        {
            "scene": "2",
            "free": "true",
            "number-1": "4",
            "hand-1": "5",
            "left-2": "3",
            "head": "1.2",
        },
        {"run": "recorded-captions"},
    ),
    ("practice", {"figure": "save"}, {}),
    ("findings", {"finding": "superposition"}, {}),
    ("findings", {"finding": "grokking", "step": "300"}, {}),
    ("own-data", {"set": "example-shapes", "size": "16", "colour": "colour", "fit": "whole"}, {}),
    ("own-data", {"kind": "pairs"}, {}),
    ("own-data", {"kind": "labels"}, {}),
    ("own-data", {"kind": "text"}, {}),
    ("masks", {"mask": "causal", "pad": "1", "text": "a red dog", "trap": "float"}, {}),
    ("numbers", {"figure": "bytes", "cut": "byte", "corpus": "korean"}, {}),
    ("numbers", {"figure": "moving", "table": "tgt_embedding", "words-dimensions": "3"}, KOREAN),
    ("build", {"show": "gpt2-small", "names": "hugging-face"}, {}),
    ("parameters", {"show": "gpt2-small", "versus": "vit-b", "names": "transformer-lens"}, {}),
    ("parameters", {"show": "mixtral-8x7b", "tab": "experts"}, {}),
    ("build", {"form": "fused"}, KOREAN),
    ("parameters", {"search": "norm", "fold": "false"}, KOREAN),
    (
        "parameters",
        {"tab": "compute", "batch": "3", "src": "7", "tgt": "5", "grows": "width"},
        KOREAN,
    ),
    ("build", SIZES, PAIR),
    ("parameters", SIZES, PAIR),
    ("walk", SIZES, PAIR),
    ("build", {"show": "notebook", "notebook": NOTEBOOK}, {}),
    ("parameters", {"show": "notebook", "notebook": NOTEBOOK}, {}),
    ("walk", {"show": "notebook", "notebook": NOTEBOOK}, {}),
    ("training-step", {"figure": "step", "stage": "loss"}, {}),
    ("model", {"figure": "shares"}, {}),
    ("use", {"figure": "failures"}, {}),
    ("training-step", {"stage": "update", "weights": "last"}, KOREAN),
    ("practice", {"figure": "speed", "show": "gpt2-small", "compare": "batch"}, {}),
    ("walk", {"walk-source": "book", "walk-positions": "sinusoidal", "part": "scores"}, {}),
    ("walk", {"show": "bert-base", "block": "7", "names": "notebook"}, {}),
    (
        "numbers",
        {
            "op": "transpose",
            "transpose-first": "0 ",
            "transpose-other": "1 ",
            "transpose-shape": "2, 3 ",
            "transpose-prepared": "every other",
            "transpose-dtype": "int64",
        },
        {},
    ),
    (
        "numbers",
        {
            "op": "matmul",
            "matmul-second": "3, 2 ",
            "matmul-shape": "2, 3 ",
            "matmul-prepared": "every other",
            "matmul-dtype": "int64",
        },
        {},
    ),
    (
        "numbers",
        {
            "op": "broadcast",
            "broadcast-sign": "*",
            "broadcast-second": "3 ",
            "broadcast-shape": "4, 3 ",
            "broadcast-prepared": "every other",
            "broadcast-dtype": "int64",
        },
        {},
    ),
    (
        "numbers",
        {"op": "transpose", "transpose-content": "own", "transpose-numbers": "5 5 7, 0.5, -1, 2"},
        {},
    ),
    (
        "by-hand",
        {
            "words": "old tree",
            "numbers-one": "2",
            "mask": "causal",
            "scale": "false",
            "turned": "1-2",
            "vectors": "1,2;0.5,-1",
            "at": "1-2-2",
        },
        {},
    ),
    (
        "by-hand",
        {
            "stage": "projections",
            "numbers-one": "2",
            "draw": "7",
            "wq": "0,1;1,0",
            "wk": "1,1;0,1",
            "wv": "2,0;0,1",
            "rate": "0.3",
            "learned": "5",
            "wanted": "1-3,2-2",
        },
        {},
    ),
    ("by-hand", {"stage": "heads", "numbers-heads": "2", "wo": "2,-0.5;0.25,1", "head": "2"}, {}),
    ("by-hand", {"figure": "calculator", "stage": "heads", "heads-4": "4", "head": "3"}, {}),
    ("by-hand", {"stage": "forms", "numbers-heads": "6", "heads-6": "3", "form": "torch"}, {}),
    (
        "attention",
        {
            "kind": "decoder",
            "head": "2",
            "example": "2",
            "step": "0",
            "pin": "q2",
            "deeper": "compare",
            "versus": "1.1.0.",
        },
        KOREAN,
    ),
    ("attention", {"kind": "cross", "deeper": "arithmetic", "cell": "2,1", "rows": "read"}, KOREAN),
    (
        "attention",
        {"kind": "patches", "layer": "2", "patch": "2,3", "small": "matrix", "view": "lines"},
        DIGITS,
    ),
]
ELSEWHERE = {  # tests/pages opens these, with what they need
    ("practice", "notebook"),
    ("training-step", "notebook"),
    ("training-step", "show"),
    ("walk", "walk-digit"),
    ("walk", "out"),
    ("walk", "walk-text"),
    ("attention", "text"),
    ("attention", "tokens"),
    ("attention", "own"),
    ("compare", "bands"),
    *(("mistakes", query) for query in ("show", "by", "order", "cell")),
    ("challenges", "pair"),
    ("sweeps", "sweep"),
    *(("own-data", query) for query in ("by", "share")),
    *(("class", query) for query in ("view", "of")),
}


CHANGING = ("A recorded run,", "A training step takes")
"""How what may change begins: nobody chose the run, unlike a link's; a time is measured later."""


def drawn(app: AppTest) -> list[tuple[str, str, str]]:
    """Return what stands on the page: kind, key and value of everything."""
    every = [app.title, app.header, app.markdown, app.caption, app.code, app.error, app.info]
    widgets = [
        app.selectbox,
        app.text_input,
        app.toggle,
        app.slider,
        app.button_group,
        app.multiselect,
        app.number_input,
        app.select_slider,
        app.metric,
    ]
    return [
        (one.type, str(getattr(one, "key", None)), str(one.value))
        for group in (*every, *widgets)
        for one in group
        if not str(one.value).startswith(CHANGING)
    ]


@pytest.mark.core(12)
@pytest.mark.parametrize(("name", "asked", "besides"), SHOWN, ids=lambda value: str(value)[:60])
def test_the_link_that_a_page_offers_opens_the_same_view(recorded, name, asked, besides):
    app = opened_at(PAGES[name].file, **besides, **asked)
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
        ("numbers", {"corpus": "no-such-corpus"}),
        ("masks", {"pad": "99"}),
        ("numbers", {"view-dtype": "float7"}),
    ],
)
def test_what_a_link_has_wrong_is_said_outside_what_is_folded(recorded, name, query):
    app = opened_at(PAGES[name].file, **query)
    assert [one for one in app.warning if one.icon == ":material/link_off:"]
    folded = app.get("popover")
    assert folded
    assert not [one for popover in folded for one in popover.warning]


def test_every_parameter_of_every_page_is_opened_once():
    changed = {(name, query) for name, asked, _besides in SHOWN for query in asked}
    every = {(name, query) for name, of_page in PARAMETERS.items() for query in of_page}
    one_operation = {"op", *fields_of_operation("transpose")}
    operations = {
        parameter.query for name in OPERATIONS for parameter in fields_of_operation(name).values()
    }
    others = {("numbers", query) for query in operations - one_operation}
    assert every - changed - ELSEWHERE - others == set()

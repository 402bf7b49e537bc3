"""A browser is told the name of a large message only while it holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.held import Held

pytestmark = pytest.mark.quick

EARLY, WHOLE, FRAGMENT = (
    ForwardMsg.FINISHED_EARLY_FOR_RERUN,
    ForwardMsg.FINISHED_SUCCESSFULLY,
    ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
)
MAX = 2


@dataclass
class Page:
    """What Streamlit's page does: it forgets at the end of a run, in the order of what it hears."""

    most: int = MAX
    runs: int = 0
    messages: dict[str, tuple[ForwardMsg, int, str]] = field(default_factory=dict)

    def hear(self, message: ForwardMsg) -> ForwardMsg:
        kind = message.WhichOneof("type")
        if kind == "script_finished" and message.script_finished != EARLY:
            self.runs += 1
            fragments = message.metadata.run.fragment_ids
            for name, (_message, used, fragment) in list(self.messages.items()):
                if fragments and fragment not in fragments:
                    continue
                if self.runs - used > self.most:
                    del self.messages[name]
        name = message.ref_hash if kind == "ref_hash" else message.hash
        if kind == "ref_hash":
            message, _used, fragment = self.messages[name]  # fails as the page does: "MISS"
            self.messages[name] = (message, self.runs, fragment)
        elif message.metadata.cacheable:
            fragment = self.messages.get(name, (None, 0, message.delta.fragment_id))[2]
            self.messages[name] = (message, self.runs, fragment)
        return message


def _large(name: str, fragment: str = "") -> ForwardMsg:
    message = ForwardMsg(hash=name + fragment)
    message.metadata.cacheable = True
    message.delta.fragment_id = fragment
    message.delta.new_element.markdown.body = name
    return message


def _end(status: ForwardMsg.ScriptFinishedStatus.ValueType, *fragments: str) -> ForwardMsg:
    message = ForwardMsg(script_finished=status)
    message.metadata.run.fragment_ids.extend(fragments)
    return message


LARGE = st.builds(_large, st.sampled_from("abcd"), st.sampled_from(["", "one", "two"]))
ENDS = st.sampled_from(
    [
        _end(EARLY),
        _end(WHOLE),
        _end(FRAGMENT, "one"),
        _end(FRAGMENT, "two"),
        _end(FRAGMENT, "one", "two"),
    ]
)


@given(st.lists(LARGE | ENDS, max_size=60))
def test_a_page_has_every_message_that_is_named(sent: list[ForwardMsg]) -> None:
    held, page = Held(MAX), Page()
    for message in sent:
        assert page.hear(held.named(message)) == message


@given(st.lists(LARGE | ENDS, max_size=60), st.data())
def test_a_page_that_counts_an_end_less_has_it_too(
    sent: list[ForwardMsg], data: st.DataObject
) -> None:
    """It counts none that it hears between asking for a run and the run's beginning."""
    held, page = Held(MAX), Page()
    for message in sent:
        named = held.named(message)
        is_end = message.WhichOneof("type") == "script_finished"
        if not is_end or data.draw(st.booleans()):
            assert page.hear(named) == message


def test_what_a_page_holds_is_named() -> None:
    held = Held(MAX)
    first = _large("a")
    assert held.named(first) is first
    for _run in range(5):
        assert held.named(_large("a")).ref_hash == "a"
        held.named(_end(WHOLE))
    for _tick in range(10):  # of a fragment: what the page drew is held as before
        held.named(_end(FRAGMENT, "one"))
    assert held.named(_large("a")).ref_hash == "a"
    for _run in range(MAX + 1):
        held.named(_end(WHOLE))
    assert held.named(first) is first


def test_what_is_small_is_sent() -> None:
    held = Held(MAX)
    small = ForwardMsg(hash="a")
    small.delta.new_element.markdown.body = "a"
    assert held.named(small) is small
    assert held.named(small) is small

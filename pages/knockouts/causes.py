"""What decides between two answers: activation patching, and what each part adds to the logits."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.i18n import _, paragraph
from pages.knockouts import outcome, paths, state
from pages.knockouts.link import CHANGED, OTHER, TEXT
from pages.ui import show, typed
from pages.ui import state as session
from pages.ui.address import view_link
from pages.ui.typed import escape
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.knockouts import causes
from tfm_core.inspect.knockouts.causes import Causes
from tfm_core.inspect.knockouts.parts import STACKS
from tfm_core.inspect.knockouts.patching import patches_of
from tfm_core.plots.heads import knockouts as plots
from tfm_core.runs.run import Run

MAX_BARS = 12
_OF = "knockouts-changed-of"


def part(run: Run, index: int) -> None:
    """Show which positions, heads and layers decide between two inputs' answers."""
    if not causes.can_change(run):
        st.info(_("This needs a Transformer that answers with words or a class."))
        return
    if run.probe().images is None:
        text, changed = _two_texts(run, index)
        if causes.is_slow(run, text) and not _is_requested(run, text, changed):
            return
        pair: causes.Pair = (text, changed)
    else:
        pair = (index, _other_picture(run, index))
    found = causes.causes_of(run, pair)
    _answers(found)
    if found.patches is None:
        _unpatched(run, found)
        return
    for stack, (values, names) in found.streams().items():
        show.figure(
            plots.restored_map(
                values,
                [_(name) for name in names],
                found.tokens[stack],
                column_title=_("{stack} position", stack=_(STACKS[stack])),
                theme=session.theme(),
            ),
            _("Restored by patching one position before or after a layer: 1 is the whole answer."),
            key=f"knockouts-stream-{stack}",
        )
    left, right = st.columns(2, gap="medium")
    with left:
        _lens(found)
        values, attentions = found.heads()
        show.figure(
            plots.restored_map(
                values,
                [_(causes.attention_name(each)) for each in attentions],
                [str(n + 1) for n in range(values.shape[1])],
                column_title=_("head"),
                theme=session.theme(),
            ),
            _("Restored by patching one head, at all positions."),
            key="knockouts-patched-heads",
        )
    with right:
        _direct(found)
    paths.part(run, found.strongest_head(), partial(causes.paths_of_pair, run, pair))
    show.code(patches_of)


def _unpatched(run: Run, found: Causes) -> None:
    """Show what needs few runs of a large model, and say why the rest is left out."""
    n_passes, n_tokens, n_weights = causes.cost_of(run)
    st.info(
        _(
            "Patching would take {n} runs with {tokens} tokens through {weights} weights: minutes. "
            "These two need few.",
            n=f"{n_passes:,}",
            tokens=n_tokens,
            weights=f"{n_weights:,}",
        )
    )
    left, right = st.columns(2, gap="medium")
    with left:
        _lens(found)
    with right:
        _direct(found)


def _lens(found: Causes) -> None:
    show.figure(
        plots.lens_lines(found.lens, found.answers),
        _("Logit lens: how likely each answer to the first input is after each layer."),
        key="knockouts-lens",
    )


def _is_requested(run: Run, text: str, changed: str) -> bool:
    """Offer what takes seconds; return whether it was asked for."""
    question = (run.id, checkpoint_mark(run), f"{text}\n{changed}", 0)
    if state.is_requested("causes", question):
        return True
    st.button(
        _("Patch it ({n} runs)", n=f"{causes.cost_of(run, text)[0]:,}"),
        type="primary",
        icon=":material/play_arrow:",
        key="knockouts-patch",
        on_click=state.enqueue,
        args=("causes", question),
    )
    return False


def _answers(found: Causes) -> None:
    first, second = found.answers
    words = escape(first), escape(second)
    if found.written:
        st.markdown(
            _(
                "After “{written}”: **{first}**; with the change, **{second}**.",
                written=escape(found.written),
                first=words[0],
                second=words[1],
            )
        )
    else:
        st.markdown(
            _(
                "Answer: **{first}**; with the change, **{second}**.",
                first=words[0],
                second=words[1],
            )
        )
    show.prose(paragraph("knockouts/causes"))


def _direct(found: Causes) -> None:
    if found.effects is None:
        st.caption(_("No direct effects: more layers follow the last block."))
        return
    show.figure(
        plots.direct_effects([(_(name), value) for name, value in found.parts(MAX_BARS)]),
        _(
            "What each part adds to {first} over {second}; in sum {total}.",
            first=escape(found.answers[0]),
            second=escape(found.answers[1]),
            total=f"{sum(effect for _part, effect in found.effects):+.2f}",
        ),
        key="knockouts-direct",
    )


def _two_texts(run: Run, index: int) -> tuple[str, str]:
    """Let the visitor type both inputs; at first an example, and one changed token."""
    problem = view_link.receive(TEXT) or view_link.receive(CHANGED)
    if _is_of_another(run, index):
        st.session_state[TEXT.key] = st.session_state[CHANGED.key] = ""
    if not st.session_state[TEXT.key]:
        st.session_state[TEXT.key] = causes.text_of(run, index)
    left, right = st.columns(2, gap="medium")
    text = left.text_input(
        _("Input"), key=TEXT.key, on_change=_forget_changed, help=_("Clear it for the example.")
    )
    if not st.session_state[CHANGED.key]:
        st.session_state[CHANGED.key] = causes.suggested(run, typed.within(text, TEXT.most))
    changed = right.text_input(
        _("Changed input"),
        key=CHANGED.key,
        help=_("As many tokens as the input; clear it for a suggestion."),
    )
    view_link.warn(problem)
    view_link.say(TEXT, text)
    view_link.say(CHANGED, changed)
    return typed.within(text, TEXT.most), typed.within(changed, CHANGED.most)


def _forget_changed() -> None:
    st.session_state[CHANGED.key] = ""


def _other_picture(run: Run, index: int) -> int:
    problem = view_link.receive(OTHER)
    probe = run.probe()
    is_there = 0 <= int(st.session_state[OTHER.key]) < len(probe.items)
    if _is_of_another(run, index) or not is_there:
        st.session_state[OTHER.key] = causes.other_picture(run, index)
    other = outcome.choose_picture(run, probe, OTHER.key, _("Other picture"))
    view_link.warn(problem)
    view_link.say(OTHER, other)
    return other


def _is_of_another(run: Run, index: int) -> bool:
    """Return whether the other input was chosen for another example."""
    before = st.session_state.get(_OF)
    st.session_state[_OF] = (run.id, index)
    return before not in (None, (run.id, index))

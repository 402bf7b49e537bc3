"""The seven steps: choice, progress, texts and guided runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.navigation import page_table
from pages.app.runs import run_actions, run_time, run_words, runs_access, shown_run
from pages.app.typed import escape
from pages.i18n import N_, _, content, paragraph
from tfm_core import byte_cache
from tfm_core.inspect.practice import evaluation, lesson
from tfm_core.inspect.practice.evaluation import Evaluation
from tfm_core.inspect.practice.lesson import LessonKind
from tfm_core.runs.run import Run

SCOPE = "practice"
Runs = dict[LessonKind, Run]
NAMES: dict[LessonKind, str] = {
    "plain": N_("No augmentation"),
    "early": N_("No augmentation, stopped early"),
    "augmented": N_("With augmentation"),
}
TRAIN_GUIDED = N_("Train the guided run ({time})")
TICK = 1.5  # seconds between refreshes while runs train
_BY_RUN: dict[str, LessonKind] = {"train": "plain", "early": "early", "augment": "augmented"}
_DONE = "practice-done"


@dataclass(frozen=True)
class Practice:
    """The step that is shown."""

    step: str = view.choice(
        N_("Step"),
        {
            "split": N_("1 Split"),
            "train": N_("2 Train and watch"),
            "early": N_("3 Stop early"),
            "augment": N_("4 Augment"),
            "errors": N_("5 Look at errors"),
            "save": N_("6 Save and load"),
            "test": N_("7 Test, once"),
        },
        is_list=False,
        look={"label_visibility": "collapsed"},
    )


def runs() -> Runs:
    """Return the guided runs: of this session, of another, or else the recorded ones."""
    return lesson.find(visitors.with_lessons())


def choose(runs: Runs) -> str:
    """Choose a step; show which ones are done."""
    names = view.fields(Practice, SCOPE)["step"].settings["options"]
    done = {name for name in names if _is_done(name, runs)}
    picked = view.ask(Practice, SCOPE).step
    badges = " ".join(
        f":green-badge[✓ {number}]" if name in done else f":gray-badge[{number}]"
        for number, name in enumerate(names, 1)
    )
    words = _("{n} of {all} done", n=len(done), all=len(names))
    st.markdown(f"{badges} {words}")
    return picked


def why(name: str) -> None:
    st.markdown(content(f"practice_{name}").partition("\n---\n")[0])


def mistake(name: str) -> None:
    words = content(f"practice_{name}").partition("\n---\n")[2].strip()
    st.warning(_("**The common mistake.** {words}", words=words), icon=":material/report:")


def mark(name: str) -> None:
    """Mark a step of this session as done; for a button's callback."""
    st.session_state.setdefault(_DONE, set()).add(name)


def mark_done(name: str) -> None:
    if not is_marked(name):
        mark(name)
        st.rerun()


def is_marked(name: str) -> bool:
    return name in st.session_state.get(_DONE, set())


def starter(kinds: list[LessonKind], label: str, runs: Runs) -> None:
    """Offer to train the kinds that are missing or have failed."""
    missing = [kind for kind in kinds if not _is_own(kind, runs) or runs[kind].status.can_resume]
    if not missing:
        return
    if all(kind in runs and runs[kind].meta.recorded for kind in kinds):
        st.caption(
            _(
                "{badge} Trained beforehand; train it here yourself.",
                badge=shown_run.origin_badge(runs[kinds[0]]),
            )
        )
    time = run_time.in_sequence(
        [lesson.guided(kind) for kind in missing], usual=[lesson.SECONDS[kind] for kind in missing]
    )
    words = _(label, time=run_time.words(time))
    if st.button(words, type="primary", icon=":material/play_arrow:", key=f"practice-{kinds[-1]}"):
        for kind in missing:
            name = _("Practice: {what}", what=_(NAMES[kind]))
            if run_actions.start(lesson.guided(kind), name=name) is None:
                return  # the reason is shown
        st.rerun()


def live(kinds: list[LessonKind], runs: Runs, draw: Callable[[Runs], None]) -> None:
    shown = {kind: runs[kind] for kind in kinds if kind in runs}
    is_live = any(run.status.is_active for run in shown.values())

    def part() -> None:
        if is_live and not any(run.status.is_active for run in shown.values()):
            state.draw_anew()  # once: redrawn, it no longer polls
        columns = st.columns(len(shown)) if shown else []
        for column, (kind, run) in zip(columns, shown.items(), strict=True):
            with column:
                _run_status(kind, run)
        draw(shown)

    st.fragment(part, run_every=TICK if is_live else None)()


def chosen(runs: Runs) -> tuple[LessonKind, Run] | None:
    """Return and show the run that validation chooses; show what is missing if there is none."""
    ready = {
        kind: (run, runs_access.curves(run))
        for kind, run in lesson.finished(runs).items()
        if evaluation.has_weights(run)
    }
    best = lesson.chosen(ready)
    if best is None:
        st.info(_("This step needs a finished run: train one first."))
        starter(["plain"], TRAIN_GUIDED, runs)
        return None
    kind, step, loss = best
    show.prose(
        paragraph(
            "practice/chosen",
            name=_(NAMES[kind]),
            step=f"{step:,}",
            loss=f"{loss:.3f}",
            n=len(ready),
        )
    )
    return kind, runs[kind]


def evaluated(run: Run, split: str) -> Evaluation:
    """Return the cached answers of a run on a split. Raises ValueError."""
    with st.spinner(_("Answering every picture …")):
        return _evaluated(run.folder, evaluation.weights_mark(run), split)


@byte_cache.cached
def _evaluated(folder: Path, mark: int, split: str) -> Evaluation:
    return evaluation.evaluate(Run(folder), split)


def _is_done(name: str, runs: Runs) -> bool:
    kind = _BY_RUN.get(name)
    if kind is not None:
        return _is_own(kind, runs) and kind in lesson.finished(runs)
    return is_marked(name) or (name == "split" and _is_own("plain", runs))


def _is_own(kind: LessonKind, runs: Runs) -> bool:
    return kind in runs and not runs[kind].meta.recorded


def _run_status(kind: LessonKind, run: Run) -> None:
    status = run.status
    st.markdown(f"**{_(NAMES[kind])}** {run_words.badge(status)}")
    trained = _("trained {time}", time=show.duration(status.seconds)) if status.seconds else ""
    st.caption(" · ".join(filter(None, (run_words.progress(status), trained))))
    if status.reason:
        st.caption(escape(_(status.reason)))
    st.page_link(
        page_table.path_of("train"),
        label=_("Watch"),
        icon=":material/show_chart:",
        query_params={"run": run.id, **run_actions.way_back()},
    )

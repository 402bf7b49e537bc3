"""The words of a lesson, from Markdown: a title, a goal, a text, and a section for each task.

Those of a tour have no goal and no text.

    # Title
    What you can do afterwards, in one line.

    Any text.

    ## task-id: Title of the task
    What to do.

    - [x] the right option
      Why it is right.
    - [ ] a wrong option
      Why it is wrong.

    > What is said once the task is solved.

Options are for questions alone; of a number they are the right one and those that are often given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfm_core.choices.config.base import ConfigError, Problem
from tfm_core.sentences import N_

MAX_TITLE, MAX_GOAL = 60, 200
_HEADING = re.compile(r"^##[ \t]+(.*)$", re.MULTILINE)
_OPTION = re.compile(r"- \[([ xX])\] +(\S.*)")


@dataclass(frozen=True, slots=True)
class Option:
    """An answer to a question. why: it is right or wrong, "" where nothing is said."""

    text: str
    is_right: bool
    why: str


@dataclass(frozen=True, slots=True)
class TaskWords:
    """The section of a task. title: "" for none. solved: what is said once it is solved."""

    text: str
    title: str = ""
    options: tuple[Option, ...] = ()
    solved: str = ""

    @property
    def right(self) -> tuple[str, ...]:
        """The right options."""
        return tuple(option.text for option in self.options if option.is_right)


@dataclass(frozen=True, slots=True)
class LessonWords:
    """All words of a lesson. tasks: by id, in the order of the file."""

    title: str
    goal: str
    text: str
    tasks: Mapping[str, TaskWords]


def parse(text: str, file: str) -> LessonWords:
    """Return the words in a Markdown text. Raises ConfigError, one sentence a problem."""
    head, *rest = _HEADING.split(text.replace("\r\n", "\n").lstrip("\ufeff"))
    sections = list(zip(rest[::2], rest[1::2], strict=True))
    problems: list[Problem] = []
    title, goal, body = _head(head, file, problems)
    tasks: dict[str, TaskWords] = {}
    for heading, section in sections:
        name, _colon, task_title = (part.strip() for part in heading.partition(":"))
        if name in tasks:
            why = N_("{file} has two sections “## {name}”.", file=file, name=name)
            problems.append(Problem(file, why))
        tasks[name] = _task(section, task_title)
        if not tasks[name].text:
            why = N_("{file}: the section “## {name}” has no text.", file=file, name=name)
            problems.append(Problem(file, why))
    if problems:
        raise ConfigError(problems)
    return LessonWords(title, goal, body, tasks)


def _head(text: str, file: str, problems: list[Problem]) -> tuple[str, str, str]:
    first, _newline, rest = text.strip().partition("\n")
    title = first.removeprefix("# ").strip() if first.startswith("# ") else ""
    goal, _gap, body = rest.strip().partition("\n\n")
    goal = " ".join(goal.split())
    if not title:
        problems.append(Problem(file, N_("{file} must begin with “# ” and a title.", file=file)))
    for what, given, most in ((N_("title"), title, MAX_TITLE), (N_("goal"), goal, MAX_GOAL)):
        if len(given) > most:
            why = N_(
                "{file}: the {what} has {n} characters; the limit is {most}.",
                file=file,
                what=what,
                n=len(given),
                most=most,
            )
            problems.append(Problem(file, why))
    return title, goal, body.strip()


def _task(section: str, title: str) -> TaskWords:
    text: list[str] = []
    solved: list[str] = []
    options: list[tuple[str, bool, list[str]]] = []
    for line in section.strip().split("\n"):
        if found := _OPTION.fullmatch(line.rstrip()):
            options.append((found[2], found[1] != " ", []))
        elif options and line.startswith("  ") and line.strip():
            options[-1][2].append(line.strip())
        elif line.startswith(">"):
            solved.append(line[1:].strip())
        else:
            text.append(line.rstrip())
    return TaskWords(
        "\n".join(text).strip(),
        title,
        tuple(Option(name, is_right, " ".join(why)) for name, is_right, why in options),
        "\n".join(solved).strip(),
    )

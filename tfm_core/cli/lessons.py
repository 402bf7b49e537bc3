"""Lessons on the command line: check a file, verify results, and put both into other formats."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tfm_core.choices.config import ConfigError
from tfm_core.cli.commands import FAILED, WRONG_INPUT
from tfm_core.cli.words import _, ngettext
from tfm_core.sentences import StudentError

_MAX_FILE = 20_000_000


def add_parser(commands: Any) -> None:
    """Add ``lesson`` and what it can do to the commands."""
    lesson = commands.add_parser(
        "lesson", help=_("check a lesson, verify results (docs/lessons.md)")
    )
    actions = lesson.add_subparsers(required=True, metavar="ACTION")

    check = actions.add_parser("check", help=_("check lesson files for errors"))
    check.add_argument(
        "files", metavar="FILE", nargs="+", help=_("a TOML file, with its words beside it")
    )
    check.set_defaults(command=check_files)

    verify = actions.add_parser("verify", help=_("print the results in files as a table"))
    verify.add_argument(
        "files", metavar="FILE", nargs="+", help=_("text with signed lines, - for input")
    )
    verify.add_argument("--json", action="store_true", help=_("print JSON"))
    verify.set_defaults(command=verify_files)

    to_zip = actions.add_parser("scorm", help=_("write a lesson as a SCORM 1.2 package"))
    to_zip.add_argument("id", metavar="ID", help=_("the id of a lesson of this server"))
    to_zip.add_argument("--address", metavar="URL", required=True, help=_("address of the app"))
    to_zip.add_argument("--out", metavar="FILE", help=_("output file (default: ID.zip)"))
    to_zip.set_defaults(command=write_package)


def check_files(options: argparse.Namespace) -> int:
    """Print a sentence for each problem of lesson files."""
    from tfm_core.lessons.lesson import read

    n_wrong = 0
    for name in options.files:
        try:
            lesson = read(Path(name))
        except ConfigError as error:
            n_wrong += 1
            print("\n".join(_(problem.sentence) for problem in error.problems), file=sys.stderr)
            continue
        n = len(lesson.tasks)
        print(
            ngettext(
                "{name}: no errors in “{title}” ({n} task, {minutes} minutes).",
                "{name}: no errors in “{title}” ({n} tasks, {minutes} minutes).",
                n,
                name=name,
                title=lesson.words().title,
                n=n,
                minutes=lesson.minutes,
            )
        )
    return WRONG_INPUT if n_wrong else 0


def verify_files(options: argparse.Namespace) -> int:
    """Print what each result says, and which are forged, foreign, damaged or there twice."""
    from tfm_core.lessons import results

    texts = [(name, _text(name)) for name in options.files]
    rows = results.check(texts, results.server_key())
    if options.json:
        print(
            json.dumps(
                [
                    {
                        "file": row.file,
                        "line": row.number,
                        "standing": row.standing,
                        "why": row.why,
                        **row.values,
                    }
                    for row in rows
                ]
            )
        )
    else:
        print(
            _columns(
                _("status"), _("lesson"), _("name or participant"), _("solved"), _("at, answers")
            )
        )
        for row in rows:
            print(_row(row))
            if row.why:
                print(f"{'':<13} {row.file}:{row.number}: {_(row.why)}")
    if not rows:
        raise StudentError("There is no result in these files.")
    return 0 if all(row.standing == "good" for row in rows) else FAILED


def _row(row: Any) -> str:
    values, is_known = row.values, row.standing in ("good", "duplicate")
    if not is_known:  # nothing in it can be believed
        return f"{row.standing:<13}"
    name = _plain(values.get("name") or values.get("participant"), 24)
    solved = f"{row.n_solved}/{row.n_tasks}"
    answers = ", ".join(
        f"{_plain(task, 40)} {'✓' if one.get('right') else '✗'} {_plain(one.get('tries'), 5)}"
        for task, one in values["answers"].items()
    )
    at = _plain(values.get("at"), 25)
    return _columns(row.standing, _plain(values["lesson"], 20), name, solved, f"{at}  {answers}")


def _columns(standing: str, lesson: str, name: str, solved: str, rest: str) -> str:
    return f"{standing:<13} {lesson:<20} {name:<24} {solved:>7}  {rest}"


def _plain(value: object, most: int) -> str:
    """Return a value in one printable line: a name may be anything."""
    return "".join(c if c.isprintable() else "?" for c in str(value))[:most]


def write_package(options: argparse.Namespace) -> int:
    """Write a lesson as a zip that a learning platform takes."""
    from tfm_core.lessons import catalogue, scorm
    from tfm_core.runs.disk.atomic import write_output

    content = scorm.package(catalogue.lesson(options.id), options.address)
    path = Path(options.out or f"{options.id}.zip")
    write_output(path, content)
    print(path)
    return 0


def _text(name: str) -> str:
    try:
        with (
            nullcontext(sys.stdin)
            if name == "-"
            else open(name, encoding="utf-8", errors="replace") as file
        ):
            text = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise StudentError("{file} cannot be read: {why}.", file=name, why=error.strerror) from None
    if len(text) > _MAX_FILE:
        raise StudentError("{file} is longer than {n:,} characters.", file=name, n=_MAX_FILE)
    return text

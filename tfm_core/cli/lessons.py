"""Lessons on the command line: check a file, verify results, and put both into other formats."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tfm_core.cli.commands import FAILED, WRONG_INPUT
from tfm_core.cli.words import _, ngettext
from tfm_core.config import ConfigError
from tfm_core.sentences import StudentError

_MAX_FILE = 20_000_000


def add_parser(commands: Any) -> None:
    """Add ``lesson`` and what it can do to the commands."""
    lesson = commands.add_parser(
        "lesson", help=_("check a lesson, verify results (docs/lessons.md)")
    )
    actions = lesson.add_subparsers(required=True, metavar="ACTION")

    check = actions.add_parser("check", help=_("say what is wrong with lesson files"))
    check.add_argument(
        "files", metavar="FILE", nargs="+", help=_("a TOML file; its words beside it")
    )
    check.set_defaults(command=check_files)

    verify = actions.add_parser("verify", help=_("print the results in files as a table"))
    verify.add_argument(
        "files", metavar="FILE", nargs="+", help=_("text with signed lines, - for input")
    )
    verify.add_argument("--json", action="store_true", help=_("print JSON"))
    verify.set_defaults(command=verify_files)

    to_statements = actions.add_parser(
        "xapi", help=_("print the good results in files as xAPI statements")
    )
    to_statements.add_argument(
        "files", metavar="FILE", nargs="+", help=_("text with signed lines, - for input")
    )
    to_statements.add_argument(
        "--address", metavar="URL", required=True, help=_("address of the app")
    )
    to_statements.set_defaults(command=print_statements)

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
                "{name}: “{title}” is good: {n} task, {minutes} minutes.",
                "{name}: “{title}” is good: {n} tasks, {minutes} minutes.",
                n,
                name=name,
                title=lesson.words().title,
                n=n,
                minutes=lesson.minutes,
            )
        )
    return WRONG_INPUT if n_wrong else 0


def verify_files(options: argparse.Namespace) -> int:
    """Print what each result says, and which are forged, foreign or there twice."""
    rows = _checked(options.files)
    if options.json:
        print(
            json.dumps(
                [
                    {
                        "file": row.file,
                        "line": row.number,
                        "standing": row.standing,
                        "why": row.why,
                        **row.result.values,
                    }
                    for row in rows
                ]
            )
        )
    else:
        print(
            _columns(
                _("standing"), _("lesson"), _("name or participant"), _("solved"), _("at, answers")
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
    values, is_known = row.result.values, row.standing in ("good", "duplicate")
    if not is_known:  # nothing in it can be believed
        return f"{row.standing:<13}"
    name = _plain(values.get("name") or values.get("participant"), 24)
    solved = f"{row.result.n_solved}/{row.result.n_tasks}"
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


def print_statements(options: argparse.Namespace) -> int:
    """Print xAPI statements of the good results."""
    from tfm_core.lessons.xapi import statements

    rows = _checked(options.files)
    good = [row.result for row in rows if row.standing == "good"]
    print(json.dumps(statements(good, options.address), ensure_ascii=False, indent=1))
    if len(good) < len(rows):
        print(_("{n} results were left out; see verify.", n=len(rows) - len(good)), file=sys.stderr)
    return 0


def write_package(options: argparse.Namespace) -> int:
    """Write a lesson as a zip that a learning platform takes."""
    from tfm_core.lessons import catalogue, scorm

    content = scorm.package(catalogue.lesson(options.id), options.address)
    path = Path(options.out or f"{options.id}.zip")
    path.write_bytes(content)
    print(path)
    return 0


def _checked(files: list[str]) -> list[Any]:
    from tfm_core.lessons import results

    lines = [
        (name, number, line)
        for name in files
        for number, line in enumerate(_text(name).splitlines(), 1)
    ]
    return list(results.check(lines, results.server_key()))


def _text(name: str) -> str:
    if name == "-":
        return sys.stdin.read(_MAX_FILE)
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE)
    except OSError as error:
        raise StudentError("{file} cannot be read: {why}.", file=name, why=error.strerror) from None

"""Syntax trees are made by one thread at a time."""

import ast
import gc
import threading
from pathlib import Path

import pytest

from tfm_core.inspect import syntax

TEXT = Path(syntax.__file__).read_text(encoding="utf-8")


def test_a_source_is_its_statements():
    kinds = [type(one) for one in syntax.statements("x = 1\nx")]
    assert kinds == [ast.Assign, ast.Expr]
    with pytest.raises(SyntaxError):
        syntax.statements("x =")


def test_threads_that_make_trees_at_once_do_not_break_each_other():
    """A look for garbage in the middle of a tree lets another thread go on."""
    faults: list[SystemError] = []

    def make() -> None:
        for _ in range(60):
            try:
                syntax.statements(TEXT * 8)
            except SystemError as error:
                faults.append(error)

    before = gc.get_threshold()
    watch = lambda *_: sum(range(300))  # noqa: E731
    gc.callbacks.append(watch)
    gc.set_threshold(200)
    try:
        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(watch)
    assert not faults

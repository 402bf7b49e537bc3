"""Tensors by sight: operations are torch's, what is measured is so, every error is explained."""

import builtins
import math
import re

import numpy as np
import pytest
import torch

from tfm_core.inspect.tensors import operations, sight
from tfm_core.inspect.tensors import shapes as of_axes
from tfm_core.inspect.tensors.operations import OPERATIONS, parse_arguments
from tfm_core.inspect.tensors.shapes import MISTAKES, UNKNOWN, regrouped
from tfm_core.inspect.tensors.sight import NEW, PREPARED, InputSpec
from tfm_core.trace.subject import book_example
from tfm_core.trace.trace import trace

SHARES = {  # what PyTorch's documentation says of contiguous inputs
    "view": True,
    "reshape": True,
    "unsqueeze": True,
    "squeeze": True,
    "expand": True,
    "transpose": True,
    "permute": True,
    "contiguous": True,
    "CHW to HWC": True,
    "assert": True,
}


def looked(name, shape=None, second=None, prepared="as it is", dtype="float32", **texts):
    operation = OPERATIONS[name]
    typed = second or operation.second
    return sight.run_operation(
        name,
        InputSpec(operations.shape_of(shape or operation.shape), dtype=dtype, prepared=prepared),
        parse_arguments(operation, texts),
        None if typed is None else operations.shape_of(typed),
    )


def sources(seen, index):
    """Return what an element of a result is made of."""
    shapes, axes = [look.shape for look in seen.before], [look.axes for look in seen.before]
    name = seen.operation.name
    return of_axes.sources(name, axes, seen.after.axes, shapes, index, seen.values)


def ran(code):
    """Run the lines of a page in PyTorch itself."""
    names = {"torch": torch}
    exec(code, names)
    return names


def prepared_inputs(name):
    """Yield an operation on each prepared input."""
    for prepared in PREPARED:
        if (name, prepared) != ("expand", "without its first"):  # nothing is left of one row
            yield looked(name, prepared=prepared)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_line_that_is_shown_gives_the_tensor_in_its_memory(name):
    for seen in prepared_inputs(name):
        if seen.after is None:
            with pytest.raises(getattr(builtins, seen.error_type)) as raised:
                ran(seen.code)
            assert str(raised.value) == seen.error
            continue
        names = ran(seen.code)
        y = names["y"]
        np.testing.assert_array_equal(seen.after.values, y.numpy())
        assert seen.after.strides == y.stride()
        assert seen.after.offset == y.storage_offset()
        assert seen.after.is_contiguous == y.is_contiguous()
        for letter, look, shares in zip("xb", seen.before, seen.shares, strict=False):
            np.testing.assert_array_equal(look.values, names[letter].numpy())
            same = y.untyped_storage().data_ptr() == names[letter].untyped_storage().data_ptr()
            assert shares == same
    for seen in prepared_inputs(name):
        for look in (*seen.before, *([seen.after] if seen.after else [])):
            np.testing.assert_array_equal(look.storage[look.visits], look.values.ravel())
            np.testing.assert_array_equal(look.storage_origins[look.visits], look.origins.ravel())
        kind = OPERATIONS[name].kind
        if seen.after is None or kind not in {"moves", "fills"}:
            continue
        everything = np.concatenate([look.storage for look in seen.before])
        kept = seen.after.origins != NEW
        np.testing.assert_array_equal(seen.after.values[kept], everything[seen.after.origins[kept]])
        assert kept.all() == (kind == "moves")


def test_memory_is_shared_or_comes_back_as_pytorch_says():
    for name in OPERATIONS:
        seen = looked(name)
        assert all(shares == SHARES.get(name, False) for shares in seen.shares), name
        assert len(seen.after.axes) == seen.after.values.ndim
    found = {code: gives for code, gives, _meaning in sight.numpy_facts()}
    assert found["torch.from_numpy(a); a[0] = 99"] == "t = [99.0, 1.0, 2.0]"
    assert found["torch.tensor(a); a[0] = 99"] == "t = [0.0, 1.0, 2.0]"
    assert found["n = t.numpy(); t[1] = 7"] == "n = [0.0, 7.0, 0.0]"
    values = parse_arguments(OPERATIONS["to"], {"type": "float32"})
    seen = sight.run_operation("to", InputSpec((2, 3)), values)
    assert seen.shares == (True,)
    assert "nothing was copied" in sight.note(seen)
    own = InputSpec((4,), (0.0, 0.5, -1.9, 2.0))
    found = {
        name: sight.run_operation("to", own, parse_arguments(OPERATIONS["to"], {"type": name}))
        for name in ("int64", "bool")
    }
    assert found["int64"].after.values.tolist() == [0, 0, -1, 2]
    assert found["bool"].after.values.tolist() == [False, True, True, True]
    assert "2 of 4 numbers changed" in sight.note(found["int64"])
    assert found["int64"].after.device == "cpu"


@pytest.mark.parametrize("name", MISTAKES)
def test_every_famous_error_raises_and_is_explained(name):
    operation, fields = MISTAKES[name]
    seen = looked(operation, **fields)
    assert seen.after is None
    with pytest.raises((RuntimeError, IndexError)) as raised:
        ran(seen.code)
    assert str(raised.value) == seen.error
    assert type(raised.value).__name__ == seen.error_type
    assert seen.explanation != UNKNOWN, "its cause is known"
    assert not looked(operation).error, "the way it starts is right"


@pytest.mark.parametrize(
    ("name", "texts", "cause"),
    [
        ("mean", {"dim": "3"}, "There is no axis 3"),
        ("view", {"sizes": "-2, 6"}, "cannot be -2"),
        ("expand", {"sizes": "4"}, "only 1 sizes"),
        ("expand", {"sizes": "-1, 1, 4"}, "has none to keep"),
        ("unsqueeze", {"dim": "5"}, "There is no axis 5"),
        ("stack", {"dim": "-4"}, "There is no axis -4"),
        ("arange", {"step": "0"}, "never reached"),
        ("masked_fill", {"mask": "3, 4"}, "axis -2 is 3 in the mask and 4 in x"),
        ("assert", {"sizes": "3, 2"}, "x is (2, 3), not (3, 2)"),
        ("randint", {"low": "4", "high": "4"}, "No whole number lies from 4 up to 4"),
    ],
)
def test_other_errors_are_explained_too(name, texts, cause):
    seen = looked(name, **texts)
    assert cause in seen.explanation


@pytest.mark.parametrize(
    ("equation", "first", "second"),
    [
        ("qd,kd->qk", "5, 3", "2, 3"),
        ("bqd,bkd->bqk", "2, 3, 5", "2, 4, 5"),
        ("ij,jk->", "3, 4", "4, 2"),
        ("ii->i", "4, 4", "1"),
        ("ij->ji", "3, 5", "1"),
        ("i,j->ij", "5", "3"),
        ("xb->bx", "2, 3", "1"),
    ],
)
def test_loops_give_what_einsum_gives(equation, first, second):
    seen = looked("einsum", first, second, equation=equation)
    inputs = [look.values for look in seen.before]
    np.testing.assert_allclose(of_axes.by_loops(equation, inputs), seen.after.values)
    lines = "\n".join([*seen.code.splitlines()[:2], of_axes.loops_code(equation, inputs)])
    np.testing.assert_allclose(ran(lines)["y"].numpy(), seen.after.values)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2, 3", "3, 5"),
        ("3", "3"),
        ("2, 3", "3"),
        ("3", "3, 2"),
        ("2, 2, 3", "3, 5"),
        ("2, 1, 3", "1, 3, 2"),
        ("2, 1, 2, 3", "2, 3, 2"),
    ],
)
def test_the_products_of_a_cell_sum_to_it(first, second):
    seen = looked("matmul", first, second)
    for index in np.ndindex(*seen.after.shape):
        total = sum(
            seen.before[0].values[left] * seen.before[1].values[right]
            for left, right in sources(seen, index)
        )
        assert total == seen.after.values[index]


@pytest.mark.parametrize("keepdim", ["False", "True"])
@pytest.mark.parametrize("dim", ["0", "1", "-1"])
def test_a_mean_and_an_argmax_are_made_of_what_lies_along_their_axis(dim, keepdim):
    numbers = operations.numbers_of("5, 2, 7, 1, 9, 0, 3, 8, 4, 6, 11, 10", 12)
    source = InputSpec((3, 2, 2), numbers)
    for name in ("mean", "argmax"):
        values = parse_arguments(OPERATIONS[name], {"dim": dim, "keepdim": keepdim})
        seen = sight.run_operation(name, source, values)
        x = seen.before[0].values
        for index in np.ndindex(*seen.after.shape):
            cells = [x[at] for (at,) in sources(seen, index)]
            made = np.mean(cells) if name == "mean" else np.argmax(cells)
            assert seen.after.values[index] == pytest.approx(made)


@pytest.mark.parametrize("sign", ["+", "*"])
@pytest.mark.parametrize(
    ("first", "second", "axes"),
    [("4, 3", "3", ("T", "D")), ("2, 1, 3", "5, 1", ("B", "T", "D")), ("3", "2, 3", ("T", "D"))],
)
def test_a_broadcast_reads_an_axis_of_one_again(first, second, axes, sign):
    seen = looked("broadcast", first, second, sign=sign)
    assert seen.after.axes == axes
    x, b = (look.values for look in seen.before)
    for index in np.ndindex(*seen.after.shape):
        ((at, of_b),) = sources(seen, index)
        left, right = x[at], b[of_b]
        assert seen.after.values[index] == (left + right if sign == "+" else left * right)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_a_softmax_sums_to_one_along_its_axis(dim):
    seen = looked("softmax", "3, 5", dim=str(dim))
    np.testing.assert_allclose(sight.sums(seen), 1, rtol=1e-6)
    assert len(sight.sums(seen)) == (5 if dim == 0 else 3)
    assert ("common mistake" in sight.note(seen)) == (dim == 0)


@pytest.mark.parametrize(
    ("axes", "old", "new", "names"),
    [
        (("T", "D"), (3, 10), (3, 2, 5), ("T", "D₁", "D₂")),
        (("T", "D"), (3, 10), (30,), ("T·D",)),
        (("B", "T", "D"), (2, 3, 5), (2, 15), ("B", "T·D")),
        (("T", "D"), (3, 5), (1, 3, 5), ("1", "T", "D")),
        (("T", "D"), (4, 6), (6, 4), ("T·D₁", "T·D₂")),
    ],
)
def test_axes_of_a_view_keep_the_names_of_what_stays(axes, old, new, names):
    assert regrouped(axes, old, new) == names


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "not 0"),
        ("2, 0", "at least 1 element, not 0"),
        ("9, 9", "81 elements are too many"),
        ("1, 1, 1, 1, 1", "not 5"),
        ("two", "“two” is not a whole number"),
        ("2.5", "is not a whole number"),
        ("99999", "99999 is too large"),
        ("999999999", "is too long"),
        ("2, 70", "70 is too large"),
        ("__import__('os')", "is not a whole number"),
    ],
)
def test_shapes_that_cannot_be_shown_are_said(typed, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        operations.shape_of(typed)


def test_shapes_are_read_as_written_and_what_cannot_be_is_said():
    for typed in ("2, 3", "(2, 3)", "[2,3]", "2 3", "2x3", "2 × 3"):
        assert operations.shape_of(typed) == (2, 3), typed
    with pytest.raises(ValueError, match="needs 6 numbers, not 2"):
        operations.numbers_of("1, 2", 6)
    assert operations.number_of("-inf", "Value") == -math.inf
    with pytest.raises(ValueError, match="4096 elements"):
        looked("matmul", "64, 1", "1, 64")
    with pytest.raises(ValueError, match="4096 elements"):
        looked("einsum", "64", "64", equation="i,j->ij")
    with pytest.raises(ValueError, match="nothing to transpose"):
        looked("contiguous", "5", prepared="transposed")
    with pytest.raises(ValueError, match="nothing would be left"):
        looked("contiguous", "1, 5", prepared="without its first")
    seen = looked("mm", "2, 1, 2, 3", "2, 1, 3, 5")
    assert seen.error == "self must be a matrix"
    assert "x has 4 axes and b has 4" in seen.explanation
    assert "(2, 1, 2, 3) @ (2, 1, 3, 5) gives (2, 1, 2, 5)" in seen.explanation
    assert looked("matmul", "2, 1, 2, 3", "2, 1, 3, 5").after.shape == (2, 1, 2, 5)
    unfit = looked("mm", "2, 1, 2, 3", "3, 1, 3, 5").explanation
    assert "takes two matrices" in unfit
    assert "@" not in unfit


@pytest.mark.parametrize("typed", ["ij,jk", "ij;jk->ik", "IJ->J", "a,b,c->a", "abcde->a", "...->"])
def test_equations_of_another_form_are_said(typed):
    with pytest.raises(ValueError, match=r"equation|arrow"):
        operations.equation_of(typed)


WRITTEN = {
    "matmul": " @ ",
    "unsqueeze": "[:, None",
    "contiguous": "reshape",
}  # as the walk has them


def test_the_step_of_the_walk_that_is_named_uses_the_operation():
    steps = {step.name: step.code for step in trace(book_example())}
    for name, operation in OPERATIONS.items():
        assert not operation.step or WRITTEN.get(name, name) in steps[operation.step], name

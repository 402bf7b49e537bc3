"""Figures of positions: what is drawn is what was given."""

import numpy as np
import pytest

from tfm_core.inspect.positions import tables as core
from tfm_core.plots.model import positions
from tfm_core.plots.palette import HUES
from tfm_core.variants.positions import POSITIONS


def test_one_point_alone_is_drawn_on_an_axis_from_zero():
    from tfm_core.plots.heads import before

    one = np.array([300.0]), np.array([0.5])
    for module, name in ((before, "one-head"), (positions, "learned")):
        figure = module.race({name: ("label", *one)}, "step", "share")
        assert tuple(figure.layout.xaxis.range) == (0, 600)
        two = module.race({name: ("label", np.array([0.0, 9.0]), np.ones(2))}, "step", "share")
        assert two.layout.xaxis.range is None


def test_every_kind_has_a_look_that_no_other_has():
    looks = [positions.style_of(name) for name in (*POSITIONS, None)]
    for values in ([look.colour for look in looks], [look.marker for look in looks]):
        assert len(set(values)) == len(values)
    assert {look.colour for look in looks} <= set(HUES)


def test_a_pair_is_an_even_column_a_sine_and_the_odd_one_behind_it_a_cosine():
    table = core.sinusoidal_table(17, 6)
    figure = positions.waves(table, [0, 2], trained=11)
    assert [trace.name for trace in figure.data] == [
        "dimension 0: sine", "dimension 1: cosine", "dimension 4: sine", "dimension 5: cosine",
        "trained length, 11",
    ]  # fmt: skip
    for trace, column in zip(figure.data, (0, 1, 4, 5), strict=False):
        np.testing.assert_array_equal(trace.y, table[:, column])
    rate = 10000 ** (-4 / 6)
    np.testing.assert_allclose(figure.data[2].y, np.sin(np.arange(17) * rate), atol=1e-6)
    np.testing.assert_allclose(figure.data[3].y, np.cos(np.arange(17) * rate), atol=1e-6)
    assert list(figure.data[4].x) == [10.5, 10.5]
    assert len(positions.waves(table, [0], trained=17).data) == 2


def test_a_row_parts_sines_from_cosines_and_counts_from_0():
    figure = positions.row(core.sinusoidal_table(7, 6), 0)
    assert figure.data[0].y.tolist() == [0, 0, 0]
    assert figure.data[0].x.tolist() == [0, 2, 4]
    assert figure.data[1].y.tolist() == [1, 1, 1]
    assert figure.data[1].x.tolist() == [1, 3, 5]
    assert "even" in figure.data[0].name
    assert "sine" in figure.data[0].name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_zero_is_the_middle_of_a_matrix_with_a_sign(theme):
    figure = positions.matrix(np.array([[1.0, -3.0]]), "x", "y", theme)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-3, 3)
    held = positions.matrix(np.array([[1.0, 3.0]]), "x", "y", theme, span=(-0.5, 4.0))
    assert (held.data[0].zmin, held.data[0].zmax) == (-0.5, 4)


def test_wavelengths_stand_beside_the_length_of_the_sequence():
    figure = positions.wavelengths(core.wavelengths(22), 47)
    assert len(figure.data[0].y) == 11
    assert list(figure.data[1].y) == [47, 47]
    assert figure.layout.yaxis.type == "log"


def test_hands_point_where_the_pairs_have_turned():
    figure = positions.hands(core.turns([0, 3], 4), [0, 3])
    last = [trace for trace in figure.data if trace.line.width == 3]
    assert last[0].x[1] == pytest.approx(np.cos(3))
    assert last[0].y[1] == pytest.approx(np.sin(3))


def test_lines_have_the_names_they_were_given_and_no_markup():
    figure = positions.lines_by_offset(np.arange(3), {"<b>x</b>": np.arange(3)}, "score")
    assert figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;"
    assert not figure.layout.showlegend


def test_who_noticed_nothing_is_called_a_bag():
    figure = positions.noticed({"None": ("none", 1e-7), "ALiBi": ("alibi", 0.25)})
    assert list(figure.data[0].text) == ["0: a bag", "25 %"]


def test_a_race_draws_every_kind_and_leaves_gaps():
    series = {
        "none": ("None", np.array([2, 3]), np.array([0.5, np.nan])),
        "rotary": ("Rotary", np.array([2, 3]), np.array([0.75, 1.0])),
    }
    figure = positions.race(series, "source length", "right", trained=2)
    assert [trace.name for trace in figure.data] == ["None", "Rotary"]
    assert np.isnan(figure.data[0].y[1])
    assert figure.layout.shapes[0].x0 == 2

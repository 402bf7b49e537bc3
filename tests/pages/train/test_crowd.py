"""The more sessions look at runs, the more seldom each does."""

from __future__ import annotations

from pages.train.crowd import Crowd, pace


def test_a_session_counts_once_and_until_it_has_not_looked_for_a_while() -> None:
    now = [0.0]
    crowd = Crowd(lambda: now[0])
    assert [crowd.record_poll(name) for name in ("a", "b", "a")] == [1, 2, 2]
    now[0] = 30.0
    assert crowd.record_poll("b") == 2
    now[0] += 1
    assert crowd.record_poll("b") == 1


def test_few_look_as_often_as_they_like_and_many_share() -> None:
    assert pace(1.0, 1) == pace(1.0, 7) == 1.0
    assert pace(1.0, 20) == pace(3.0, 20) == 3.0
    assert pace(3.0, 40) == 6.0
    assert pace(0.25, 1) == 0.25
    assert pace(0.25, 7) == 1.0
    looks_a_second = [n / pace(1.0, n) for n in range(1, 200)]
    assert max(looks_a_second) <= 7

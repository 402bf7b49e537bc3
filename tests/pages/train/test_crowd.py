"""The more sessions look at runs, the more seldom each does."""

from pages.train.crowd import Crowd, pace


def test_sessions_count_once_look_freely_when_few_and_share_when_many():
    now = [0.0]
    crowd = Crowd(lambda: now[0])
    assert [crowd.record_poll(name) for name in ("a", "b", "a")] == [1, 2, 2]
    now[0] = 30.0
    assert crowd.record_poll("b") == 2
    now[0] += 1
    assert crowd.record_poll("b") == 1
    assert pace(1.0, 1) == pace(1.0, 7) == 1.0
    assert pace(1.0, 20) == pace(3.0, 20) == 3.0
    assert pace(3.0, 40) == 6.0
    assert pace(0.25, 1) == 0.25
    assert pace(0.25, 7) == 1.0
    looks_a_second = [n / pace(1.0, n) for n in range(1, 200)]
    assert max(looks_a_second) <= 7

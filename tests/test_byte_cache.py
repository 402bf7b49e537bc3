"""One cache bounded by bytes: what goes, what counts, who waits."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from tfm_core import byte_cache
from tfm_core.byte_cache import ByteCache, parts_of

pytestmark = pytest.mark.quick


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    maps: dict[str, np.ndarray]
    tensor: torch.Tensor | None = None


def n_bytes(value: object) -> int:
    return sum(parts_of(value).values())


def zeros(n: int) -> np.ndarray:
    return np.zeros(n, np.uint8)


def test_what_is_oldest_too_large_or_failed_is_let_go() -> None:
    cache = ByteCache(3_500)
    for name in "abc":
        cache.get(name, lambda: zeros(1000))
    cache.get("a", lambda: pytest.fail("it was kept"))
    cache.get("d", lambda: zeros(1000))
    made: list[str] = []
    for name in "acdb":
        cache.get(name, lambda name=name: made.append(name) or zeros(1000))
    assert made == ["b"]
    assert cache.n_bytes <= 3_500
    cache = ByteCache(2_000)
    cache.get("small", lambda: zeros(1_000))
    assert cache.get("large", lambda: zeros(9_000)).size == 9_000
    cache.get("small", lambda: pytest.fail("it was kept"))
    cache = ByteCache(1_000)
    with pytest.raises(ZeroDivisionError):
        cache.get("x", lambda: 1 / 0)
    assert cache.get("x", lambda: 3) == 3


@pytest.mark.parametrize("sizes", [(1, 10, 100), (700, 700, 700), (1000,) * 50, (5000, 10, 5000)])
def test_it_never_holds_more_than_its_bytes(sizes: tuple[int, ...]) -> None:
    cache = ByteCache(2_000)
    for number, size in enumerate(sizes):
        assert len(cache.get(number, lambda size=size: zeros(size))) == size
        assert cache.n_bytes <= 2_000
    cache.clear()
    assert (cache.n_bytes, len(cache)) == (0, 0)


def test_arrays_count_once_with_what_they_keep_alive_or_share() -> None:
    large = zeros(10_000)
    assert n_bytes(large[:3]) == 10_000
    assert n_bytes([large, large[5:], large]) < 10_500
    held = Held({"a": large, "b": zeros(7_000)}, torch.zeros(1_000))
    assert 21_000 <= n_bytes(held) < 22_500
    model = torch.nn.Linear(100, 100, bias=False)
    assert 40_000 <= n_bytes(model) < 46_000
    with torch.device("meta"):
        assert n_bytes(torch.nn.Linear(10_000, 10_000)) < 10_000
    circle: list[object] = [large]
    circle.append(circle)
    assert 10_000 < n_bytes(circle) < 10_500
    assert parts_of(Held) == {}  # a class is nobody's own
    shared, cache = zeros(1_000), ByteCache(2_500)
    cache.get("a", lambda: [shared])
    cache.get("b", lambda: [shared])
    assert cache.n_bytes < 1_500
    cache.get("c", lambda: zeros(1_200))
    cache.get("d", lambda: zeros(900))
    assert cache.n_bytes <= 2_500


def test_many_who_ask_at_once_have_it_made_once() -> None:
    cache, begun, may_go = ByteCache(10_000), threading.Event(), threading.Event()
    made, got = [], []

    def make() -> np.ndarray:
        made.append(1)
        begun.set()
        may_go.wait(60)
        return zeros(5)

    threads = [threading.Thread(target=lambda: got.append(cache.get("x", make))) for _ in range(4)]
    threads[0].start()
    begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    may_go.set()
    for thread in threads:
        thread.join(60)
    assert len(made) == 1
    assert all(one is got[0] for one in got)
    assert len(got) == 4


def test_a_function_is_told_apart_by_name_and_arguments(monkeypatch) -> None:
    monkeypatch.setattr(byte_cache, "SHARED", ByteCache(10_000))
    asked = []

    @byte_cache.cached
    def twice(n: int) -> int:
        asked.append(n)
        return 2 * n

    assert [twice(3), twice(5), twice(3)] == [6, 10, 6]
    assert asked == [3, 5]


def test_many_small_things_are_estimated_and_arrays_among_them_are_not() -> None:
    words = [("a" * 100, n / 7) for n in range(50_000)]
    assert n_bytes(words) == pytest.approx(50_000 * (56 + 24), rel=0.3)
    arrays = [zeros(100) for _ in range(5_000)]
    assert n_bytes(arrays) > 500_000
    assert n_bytes([arrays, arrays[:2_500]]) < 2 * n_bytes(arrays) - 250_000

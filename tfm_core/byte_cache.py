"""A cache of what was read or computed, limited by its bytes.

A cache of so many entries may take 100 kB for one run and 5 GB for another. Here all sessions and
all kinds of arrays share one limit: the least recently used value goes first, and a value above the
limit is returned without being stored. An array that two entries share counts once.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
Parts = dict[int, int]
"""The bytes of each buffer, by the identity of its owner; those of all else, by the value's."""

SHARED_BYTES = 256 * 2**20
_OURS = ("tfm_core", "torch", "pages", "collections")
_SAMPLED = 200
_LEAVES = frozenset({bool, bytes, float, int, str, type(None)})


class ByteCache:
    """Values by key, of at most ``most`` bytes in all. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        """Begin empty."""
        self.most = most
        self.n_bytes = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Any, Parts]] = OrderedDict()
        self._making: dict[Hashable, Future[Any]] = {}
        self._owners: Counter[int] = Counter()

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._kept)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made now where it isn't kept; who asks meanwhile waits for it.

        The value belongs to everybody and must not be changed. Raises what ``make`` raises.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(T, self._kept[key][0])
            promise = self._making.get(key)
            is_mine = promise is None
            if promise is None:
                promise = self._making[key] = Future()
        if not is_mine:
            return cast(T, promise.result())
        try:
            value = make()
            parts = parts_of(value)  # of many small things it takes a while: others go on
        except BaseException as error:
            with self._lock:
                del self._making[key]
            promise.set_exception(error)
            raise
        with self._lock:
            self._keep(key, value, parts)
            del self._making[key]
        promise.set_result(value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._owners.clear()
            self.n_bytes = 0

    def _keep(self, key: Hashable, value: Any, parts: Parts) -> None:
        if sum(parts.values()) > self.most:
            return
        self._kept[key] = (value, parts)
        for owner, size in parts.items():
            self.n_bytes += 0 if self._owners[owner] else size
            self._owners[owner] += 1
        while self.n_bytes > self.most:
            _key, (_value, gone) = self._kept.popitem(last=False)
            for owner, size in gone.items():
                self._owners[owner] -= 1
                if not self._owners[owner]:
                    del self._owners[owner]
                    self.n_bytes -= size


SHARED = ByteCache(SHARED_BYTES)
"""The one of this process."""


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function of hashable arguments look into ``SHARED`` first."""

    @functools.wraps(function)
    def look(*args: P.args, **kwargs: P.kwargs) -> T:
        key = (function.__module__, function.__qualname__, args, tuple(sorted(kwargs.items())))
        return SHARED.get(key, lambda: function(*args, **kwargs))

    return look


def parts_of(value: Any) -> Parts:
    """Return the bytes of every buffer that a value holds, by identity, and of all else together.

    Arrays and tensors count with the whole buffer that they keep alive. Followed are containers,
    dataclasses and the objects of torch and of this project; of others their own size counts. Of
    many small things in a row some are measured, and stand for all.
    """
    parts: Parts = {}
    n_bytes = 0
    seen: set[int] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        if isinstance(item, list | tuple) and len(item) > 10 * _SAMPLED:
            sample = item[:: len(item) // _SAMPLED]
            counted = parts_of(sample)
            if counted.keys() == {id(sample)}:  # small things alone
                n_bytes += counted[id(sample)] * len(item) // len(sample)
                continue
        if type(item) not in _LEAVES:
            if (buffer := _buffer(item)) is not None:
                parts[buffer[0]] = buffer[1]
                continue
            stack += _held(item)
        n_bytes += sys.getsizeof(item, 0)
    return {**parts, id(value): n_bytes} if n_bytes else parts


def _buffer(item: Any) -> tuple[int, int] | None:
    """Return who owns the memory of an array, a tensor or a table, and its bytes."""
    if isinstance(item, np.ndarray):
        while isinstance(item.base, np.ndarray):
            item = item.base
        return id(item), item.nbytes
    kind: Any = type(item)
    if _has(kind, "untyped_storage"):
        if item.is_meta:
            return id(item), 0
        storage = item.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    if _has(kind, "memory_usage"):  # a DataFrame or Series
        return id(item), int(np.sum(item.memory_usage(deep=True)))
    return None


@functools.lru_cache(maxsize=4096)
def _has(kind: type, name: str) -> bool:
    return hasattr(kind, name)


@functools.lru_cache(maxsize=4096)
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _held(item: Any) -> Iterator[Any]:
    kind: Any = type(item)
    if isinstance(item, list | tuple | set | frozenset):
        yield from item
    elif isinstance(item, Mapping):
        yield from item.keys()
        yield from item.values()
    elif _has(kind, "__dataclass_fields__"):
        for name in _fields(kind):
            yield getattr(item, name, None)
    if kind.__module__.partition(".")[0] in _OURS and hasattr(item, "__dict__"):
        yield from vars(item).values()

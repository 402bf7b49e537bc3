"""Addition on a clock: “12 + 50” is 3 where 59 is 0 (Power et al. 2022, arXiv 2201.02177)."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.data.text.task import JoinedTask, Pair, check_tokens
from tfm_core.data.vocabulary import Vocabulary
from tfm_core.sentences import StudentError


@dataclass(frozen=True)
class ModularAdditionTask(JoinedTask):
    """The remainder of a + b; each number below ``modulus`` is one token."""

    src_gap = " + "
    modulus: int
    name: str = "modular-addition"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The numbers."""
        return Vocabulary(tuple(map(str, range(self.modulus))))

    @property
    def tgt_vocabulary(self) -> Vocabulary:
        """The same numbers."""
        return self.src_vocabulary

    def sample(self, rng: random.Random) -> Pair:
        """Draw both numbers evenly."""
        return self._pair(rng.randrange(self.modulus), rng.randrange(self.modulus))

    def every(self, limit: int) -> list[Pair] | None:
        """Return all sums, if they are at most ``limit``."""
        numbers = range(self.modulus)
        if self.modulus**2 > limit:
            return None
        return [self._pair(a, b) for a in numbers for b in numbers]

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Return both numbers; a sign between them may be left out. Raises ValueError."""
        written = re.findall(r"[0-9]+|[^0-9\s+=]+", text)
        tokens = check_tokens(written, self.src_vocabulary, longest=10_000)
        if len(tokens) != 2:
            raise StudentError("Write two numbers, such as 12 + 34.")
        return tokens

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the remainder of the sum; None where the source is not two numbers."""
        if len(src) != 2 or not set(src) <= set(self.src_vocabulary.tokens):
            return None
        return (str((int(src[0]) + int(src[1])) % self.modulus),)

    def _pair(self, a: int, b: int) -> Pair:
        return Pair((str(a), str(b)), (str((a + b) % self.modulus),), ((0, 1),))

"""Arithmetic on a clock: “12 + 50” is 3 where 59 is 0 (Power et al. 2022, arXiv 2201.02177)."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.choices.variants.operations import OPERATIONS
from tfm_core.data.text.task import JoinedTask, Pair, Spelling, check_tokens
from tfm_core.data.vocabulary import Vocabulary
from tfm_core.sentences import StudentError


@dataclass(frozen=True)
class ModularAdditionTask(JoinedTask):
    """An operation of a and b, modulo ``modulus``; each number below it is one token."""

    spelling = Spelling("residues", "plain")
    modulus: int
    operation: str = "add"
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
        first = int(OPERATIONS[self.operation].divides)
        return self._pair(rng.randrange(self.modulus), rng.randrange(first, self.modulus))

    def every(self, limit: int) -> list[Pair] | None:
        """Return all pairs, if they are at most ``limit``."""
        chosen = OPERATIONS[self.operation]
        if chosen.n_pairs(self.modulus) > limit:
            return None
        seconds = range(int(chosen.divides), self.modulus)
        return [self._pair(a, b) for a in range(self.modulus) for b in seconds]

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Return both numbers; the sign between them may be left out. Raises ValueError."""
        signs = re.escape(OPERATIONS[self.operation].signs)
        numbers = re.sub(rf"(?<=[0-9])\s*[{signs}]\s*(?=[0-9])", " ", text)
        written = re.findall(r"[0-9]+|[^0-9\s=]+", numbers)
        tokens = check_tokens(written, self.src_vocabulary, longest=10_000)
        if len(tokens) != 2:
            raise StudentError(
                "Write two numbers, such as {example}.", example=self.join_src(("12", "34"))
            )
        return tokens

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the answer; None where the source is not two numbers, or divides by 0."""
        if len(src) != 2 or not set(src) <= set(self.src_vocabulary.tokens):
            return None
        a, b = map(int, src)
        if OPERATIONS[self.operation].divides and b == 0:
            return None
        return self._pair(a, b).tgt

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write both numbers with the sign between them."""
        return f" {OPERATIONS[self.operation].signs[0]} ".join(tokens)

    def _pair(self, a: int, b: int) -> Pair:
        found = OPERATIONS[self.operation].result(a, b, self.modulus)
        return Pair((str(a), str(b)), (str(found),), ((0, 1),))

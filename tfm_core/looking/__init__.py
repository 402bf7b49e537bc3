"""Looking into any PyTorch model: one call records the attention of a forward pass.

    import tfm_core
    seen = tfm_core.look(model, ids, tokens=words)

torch is loaded at the first call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from tfm_core.looking.seen import Look


class _Looking:
    """``look(model, *inputs)``, and ``look.load(FILE)``."""

    def load(self, path: str | os.PathLike[str]) -> Look:
        """Read a look that ``save`` wrote. Raises StudentError, in a sentence."""
        from tfm_core.looking.file import load

        return load(path)

    def __call__(
        self,
        model: nn.Module,
        *inputs: Any,
        tokens: Sequence[str] | Sequence[Sequence[str]] = (),
        layers: Sequence[str] = (),
        crop: int | slice | None = None,
        most_bytes: int = 2**30,
        **named: Any,
    ) -> Look:
        """Run a model once on inputs and return the attention in it; leave the model as it was.

        It runs in eval mode, without gradients, and uncompiled. tokens: names of the positions; of
        an encoder and a decoder two lists, source and target. layers: names of modules whose maps
        are kept, with ``*`` for anything; all without one. crop: the positions whose rows and
        columns are kept, the first n or a slice; all without one. named: inputs by name.

        Raises what the model raises, and StudentError, in a sentence, for maps of more than
        ``most_bytes`` and for arguments that cannot be.
        """
        from tfm_core.looking.forward import forward

        return forward(
            model,
            inputs,
            named,
            tokens=tokens,
            layers=layers,
            crop=crop,
            most_bytes=most_bytes,
        )


look = _Looking()
"""Look into a model: call it."""

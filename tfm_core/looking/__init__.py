"""Looking into any PyTorch model: one call records the attention of a forward pass.

    import tfm_core
    seen = tfm_core.look(model, ids, tokens=words)

torch is loaded at the first call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

if TYPE_CHECKING:
    from torch import nn

    from tfm_core.looking.result import Look
    from tfm_core.looking.training import Watched
    from tfm_core.runs.store import RunStore


Names = Sequence[str] | Sequence[Sequence[str]]
"""Of the positions: shared by all examples, or a list for each."""


class Words(TypedDict, total=False):
    """What is shown beside the maps of a training.

    tokens: the names of the positions of what is read, one list for all examples or a list for
    each; tgt_tokens: of what a decoder reads beside it. answers: called with the model, in
    evaluation mode, at each look; returns a text for each example. truth: the right ones.
    """

    tokens: Names
    tgt_tokens: Names
    answers: Callable[[Any], Sequence[str]]
    truth: Sequence[str]


class Beginning(Words, total=False):
    """How a run of a loop of others begins; see ``look.training``."""

    name: str
    every: int
    store: RunStore


class _Looking:
    """``look(model, *inputs)``, and ``look.load(FILE)``."""

    def load(self, path: str | os.PathLike[str]) -> Look:
        """Read a look that ``save`` wrote. Raises StudentError, in a sentence."""
        from tfm_core.looking.file import load
        from tfm_core.looking.result import Look

        return load(path, Look)

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
            keeps_vectors=True,
        )

    def training(
        self,
        model: nn.Module,
        *,
        probe: Any,
        name: str | None = None,
        every: int = 100,
        steps: int | None = None,
        store: RunStore | None = None,
        **words: Unpack[Words],
    ) -> Watched:
        """Record a training loop of your own as a run, which the app shows live.

            with tfm_core.look.training(model, probe=ids, tokens=words, every=100) as run:
                for batch in loader:
                    ...
                    run.step(loss, accuracy=accuracy)

        probe: the inputs of a few fixed examples: a tuple by position, a dict by name, or one
        input. name: of the run. every: steps from one look to the next. steps: of the whole loop,
        where it is known. store: the runs, by default those of ``TFM_RUNS_DIR``. words: the names
        of positions, and answers; see ``Words``.

        Raises what the model raises at the first look, and StudentError, in a sentence, for what
        cannot be shown.
        """
        from tfm_core.looking.training import Watched

        return Watched(
            model, probe=probe, name=name, every=every, steps=steps, store=store, words=words
        )

    def for_trainer(self, *, probe: Any, **given: Unpack[Beginning]) -> Any:
        """Return a callback for ``transformers.Trainer``; given: as to ``training``.

        with look.for_trainer(probe=inputs) as callback:
            Trainer(model, arguments, callbacks=[callback], ...).train()
        """
        from tfm_core.looking.adapters import for_trainer

        return for_trainer(probe, given)

    def for_lightning(self, *, probe: Any, **given: Unpack[Beginning]) -> Any:
        """Return a callback for Lightning; given: as to ``training``.

        Trainer(callbacks=[look.for_lightning(probe=inputs)], ...).fit(model)
        """
        from tfm_core.looking.adapters import for_lightning

        return for_lightning(probe, given)


look = _Looking()
"""Look into a model: call it."""

"""Export formats besides the zip: each row names the module that writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.choices.variants.record import resolve
from tfm_core.inspect.attention.trained import no_checkpoint
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph

Progress = Callable[[float, str], None]
"""Hears the share that is done, 0 to 1, and what is being done, in words."""


@dataclass(frozen=True, slots=True)
class Export:
    """A format. name: of the command line's option, help_there: its help.

    module: with ``bundle(run, progress)``, which returns the file and raises ValueError in a
    sentence, and ``file_name(run)``; imported when it is first used. label, help, icon: as the app
    offers it. needs_weights: whether it is made of trained weights. has_refusal: whether the module
    has ``refusal(run)``, which returns why a run cannot be exported so, or None.
    """

    name: str
    module: str
    label: str
    help: str
    icon: str
    mime: str
    needs_weights: bool
    help_there: str
    has_refusal: bool = False

    def file_name(self, run: Run) -> str:
        """Return the file name."""
        return str(resolve(f"{self.module}:file_name")(run))

    def make(self, run: Run, progress: Progress | None = None) -> bytes:
        """Return the file. Raises ValueError where it cannot be made."""
        content: bytes = resolve(f"{self.module}:bundle")(run, progress)
        return content

    def refusal(self, run: Run) -> str | None:
        """Return why a run cannot be exported so, or None."""
        if self.needs_weights and not run.has_checkpoint:
            return no_checkpoint(run)
        sentence: str | None = None
        if self.has_refusal:
            sentence = resolve(f"{self.module}:refusal")(run)
        return sentence


EXPORTS = (
    Export(
        "onnx",
        "tfm_core.export.onnx",
        N_("ONNX model"),
        Paragraph("export/onnx-help"),
        ":material/deployed_code:",
        "application/octet-stream",
        needs_weights=True,
        help_there=N_("save the forward pass as ONNX instead of the zip"),
    ),
    Export(
        "hugging-face",
        "tfm_core.export.hugging_face",
        N_("Hugging Face folder (zip)"),
        N_("Weights, settings and tokenizer, ready for Transformers."),
        ":material/hub:",
        "application/zip",
        needs_weights=True,
        help_there=N_("save a Hugging Face folder for Transformers instead of the zip"),
        has_refusal=True,
    ),
    Export(
        "tensorboard",
        "tfm_core.export.tensorboard",
        N_("TensorBoard events"),
        N_("Curves, settings and heads. Unpack the zip and run `tensorboard --logdir .`"),
        ":material/query_stats:",
        "application/zip",
        needs_weights=False,
        help_there=N_("save TensorBoard event files instead of the zip"),
    ),
)

"""What LoRA trained, in a zip that PEFT reads, for the base model that the run began with.

A classifier's new layer is beside it, in its own file: the base has no place for it.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from pathlib import Path

from tfm_core.config import TunedConfig
from tfm_core.data.own import place
from tfm_core.data.text import text_task
from tfm_core.export import bundle as zips
from tfm_core.export.exports import Progress
from tfm_core.pretrained.task import tokenizer_path
from tfm_core.pretrained.tokenizer import TOKENIZER
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph, StudentError

HEAD, LABELS = "head.safetensors", "labels.json"


def refusal(run: Run) -> str | None:
    """Return why a run has no adapters, or None."""
    task = run.experiment.task
    if isinstance(task, TunedConfig) and task.trains == "lora":
        return None
    return Paragraph("pretrained/no-adapters")


def file_name(run: Run) -> str:
    """Return the file name, after that of the run's zip."""
    return zips.file_name(run).removesuffix(".zip") + "-adapters.zip"


def bundle(run: Run, progress: Progress | None = None) -> bytes:
    """Return the zip. Raises ValueError, in a sentence, where a run has no adapters."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in adapter_files(run).items():
            file.writestr(name, content)
    return target.getvalue()


def adapter_files(run: Run) -> dict[str, bytes]:
    """Return the files by name: adapters, tokenizer, and a classifier's layer and labels."""
    from safetensors.torch import save

    from tfm_core.pretrained.adapters import save_adapters
    from tfm_core.pretrained.families import PRETRAINED
    from tfm_core.training.checkpoints import load_adapted
    from tfm_core.training.tuning import lora_of

    task = run.experiment.task
    if (reason := refusal(run)) is not None or not isinstance(task, TunedConfig):
        raise StudentError(reason or Paragraph("pretrained/no-adapters"))
    with place.below(run.folder.parent), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, _step = load_adapted(run.experiment, run.folder / "checkpoints" / "last")
        save_adapters(model, PRETRAINED[task.architecture], lora_of(task), folder)
        files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        labels = text_task(task).tgt_vocabulary.tokens if task.facts.answer == "label" else ()
    head = {
        name.removeprefix("output.labels."): one.detach()
        for name, one in model.named_parameters()
        if labels and name.startswith("output.labels.")
    }
    if head:
        files[HEAD] = save(head)
        files[LABELS] = json.dumps(list(labels), ensure_ascii=False).encode()
    files[TOKENIZER] = tokenizer_path(run.folder, task.tokenizer).read_bytes()
    return files

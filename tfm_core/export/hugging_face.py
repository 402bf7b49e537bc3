"""A run as a Hugging Face folder, in a zip: Transformers loads it without any code of ours.

Which architecture it is, and what stands in the way where there is none, says
``pretrained.architectures``. The folder is opened again before it is handed over, and has to answer
as the run's model does.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from tfm_core import byte_cache
from tfm_core.choices.config import (
    Experiment,
    TunedLabelsConfig,
    TunedTextConfig,
)
from tfm_core.choices.config.shape import ImageShape, Shape, TextShape
from tfm_core.data.opened_folder import CONFIG, TOKENIZER, WEIGHTS
from tfm_core.data.opened_task import tokenizer_path
from tfm_core.data.tasks import data_shape
from tfm_core.data.user_data import sets
from tfm_core.data.vocabulary import BOS, EOS, NONE, PAD, SPECIALS
from tfm_core.export import bundle as zips
from tfm_core.export.exports import Progress
from tfm_core.export.readme import summary
from tfm_core.export.tokenizer_json import both, one_text
from tfm_core.inspect.attention.trained import checkpoint_mark, model_of
from tfm_core.pretrained.pictures import PREPROCESSOR
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError
from tfm_core.trace.source.carried import Carried, carried

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

    from tfm_core.models.build import Model
    from tfm_core.pretrained.architectures import Fit


TOLERANCE = 1e-4
"""How far an answer may be from the model's, absolutely and of its size."""


@dataclass(frozen=True, slots=True)
class HuggingFaceFolder:
    """A folder that was checked. files: by name. fit: which architecture it is.

    worst: the largest difference of an answer from the model's.
    """

    files: dict[str, bytes]
    fit: Fit
    worst: float


def refusal(run: Run) -> str | None:
    """Return which part of a model no architecture of Transformers has, in a sentence, or None."""
    try:
        if run.experiment.training is None:  # its folder is there already
            return Paragraph("pretrained/no-file")
        if isinstance(run.experiment.task, TunedLabelsConfig):
            return Paragraph("pretrained/no-classifier")
        _fit(run)
    except StudentError as error:
        return error.sentence
    return None


def bundle(run: Run, progress: Progress | None = None) -> bytes:
    """Return the zip. Raises ValueError, in a sentence, where there is no such architecture."""
    if progress is not None:
        progress(0.1, N_("Writing and checking the folder"))
    return _zip(str(run.folder), checkpoint_mark(run))


def note(content: bytes) -> Sentence | None:
    """Return why a zip does not open as a run again, or None."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if {TOKENIZER, PREPROCESSOR} & set(file.namelist()):
            return None
    return N_(
        "Transformers loads this folder, but the app cannot open it without {name}: some pieces "
        "that are merged into tokens have no id.",
        name=TOKENIZER,
    )


def file_name(run: Run) -> str:
    """Return the file name, after that of the run's zip."""
    return zips.file_name(run).removesuffix(".zip") + "-hugging-face.zip"


@byte_cache.cached
def _zip(folder: str, mark: int) -> bytes:
    """Return the zip of a run whose checkpoint has a mark; cached."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in hugging_face_folder(Run(Path(folder))).files.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            is_stored = name == WEIGHTS  # numbers do not become smaller
            info.compress_type = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            file.writestr(info, content)
    return target.getvalue()


def hugging_face_folder(run: Run) -> HuggingFaceFolder:
    """Return the files of a run's last checkpoint.

    Raises ValueError, in a sentence, where there is no such architecture or no checkpoint, or
    where the folder would not answer as the model does.
    """
    from safetensors.torch import save

    from tfm_core.pretrained.writing import tensors_of

    with sets.below(run.folder.parent):
        model, step = model_of(run)
        data = _carried(run)
    fit = _fit(run)
    config = {**fit.config, "architectures": [fit.architecture.model_class], "dtype": "float32"}
    config |= _own_ids(run)
    if data.classes:
        config["id2label"] = dict(enumerate(data.classes))
        config["label2id"] = {name: number for number, name in enumerate(data.classes)}
    words = _own_tokenizer(run) or _tokenizer(fit, data)
    files = {
        CONFIG: _json(config),
        WEIGHTS: save(tensors_of(model, fit), {"format": "pt"}),
        **words,
    }
    if fit.ours.model.family == "decoder-only":
        files["generation_config.json"] = _json(_generation(fit, run.experiment) | _own_ids(run))
    if isinstance(fit.ours.shape, ImageShape):
        files[PREPROCESSOR] = _json(_preprocessor(fit.ours.shape, data))
    worst = _difference(model, fit, files)
    if not worst < TOLERANCE:
        raise StudentError(Paragraph("export/hugging-face-differs", worst=worst))
    files["README.md"] = model_card(run, data, fit, step=step, has_tokenizer=bool(words)).encode()
    return HuggingFaceFolder(files, fit, worst)


def _carried(run: Run) -> Carried:
    """Return what the card says of the data: of a fine-tuned model a text to try alone."""
    if isinstance(run.experiment.task, TunedTextConfig):
        return Carried("write", example=str(run.probe().items[0]["src_text"]))
    return carried(run.experiment)


def _own_ids(run: Run) -> dict[str, int]:
    """Return the special tokens of a fine-tuned model, which are those of its own tokenizer."""
    task = run.experiment.task
    if not isinstance(task, TunedTextConfig):
        return {}
    ids = {"pad": task.pad_id, "bos": task.bos_id, "eos": task.eos_id}
    fallback = task.eos_id if task.eos_id != NONE else task.bos_id
    return {f"{name}_token_id": one if one != NONE else fallback for name, one in ids.items()}


def _own_tokenizer(run: Run) -> dict[str, bytes]:
    """Return the tokenizer of a fine-tuned model as it came; nothing of another one."""
    task = run.experiment.task
    if not isinstance(task, TunedTextConfig):
        return {}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    content = tokenizer_path(run.folder, task.tokenizer).read_bytes()
    return {TOKENIZER: content, "tokenizer_config.json": _json(settings)}


def _fit(run: Run) -> Fit:
    from tfm_core.pretrained.architectures import fit

    with sets.below(run.folder.parent):
        shape = data_shape(run.experiment)
    return fit(run.experiment.model, shape, length=_length(run.experiment, shape))


def _length(experiment: Experiment, shape: Shape) -> int:
    """Return how many tokens a model sees at most in one sequence."""
    if not isinstance(shape, TextShape):
        return 1
    task = experiment.task
    return task.max_src_len + task.n_answers


def _json(values: object) -> bytes:
    return f"{json.dumps(values, indent=2, ensure_ascii=False)}\n".encode()


def _generation(fit: Fit, experiment: Experiment) -> dict[str, Any]:
    from tfm_core.pretrained.writing import first_target

    first = first_target(fit)
    ids = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    values = {name: first + one for name, one in ids.items()}
    return values | {"max_new_tokens": experiment.task.n_answers}


def _tokenizer(fit: Fit, data: Carried) -> dict[str, bytes]:
    """Return the files of the tokenizer; none where a model reads pictures.

    Also none where pieces come about on the way to others and have no ids of their own.
    """
    from tfm_core.pretrained.writing import first_target

    if data.spelling is None or not data.spelling.cut:
        return {}
    try:
        if first_target(fit):
            tokenizer, mark = both(data.src, data.tgt, data.spelling)
            return _tokenizer_files(tokenizer, mark=mark)
        return _tokenizer_files(one_text(data.src, data.spelling))
    except ValueError:
        return {}


def _tokenizer_files(tokenizer: Tokenizer, *, mark: str = "") -> dict[str, bytes]:
    """Return a tokenizer and what ``AutoTokenizer`` wants beside it. mark: of special tokens."""
    pad, bos, eos, unk = SPECIALS
    special = {
        "pad_token": mark + pad,
        "bos_token": mark + bos,
        "eos_token": mark + eos,
        "unk_token": unk,
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
    }
    return {
        TOKENIZER: _json(json.loads(tokenizer.to_str())),
        "tokenizer_config.json": _json(settings | special),
        "special_tokens_map.json": _json(special),
    }


def _preprocessor(shape: ImageShape, data: Carried) -> dict[str, Any]:
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": shape.image_size, "width": shape.image_size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(data.mean),
        "image_std": list(data.std),
    }


def _difference(model: Model, fit: Fit, files: dict[str, bytes]) -> float:
    """Return how far a folder's answers are from the model's, of the largest of those."""
    import torch

    from tfm_core.pretrained.model import check_folder, load_model
    from tfm_core.pretrained.writing import answer_of

    with tempfile.TemporaryDirectory() as folder:
        for name in (CONFIG, WEIGHTS):
            (Path(folder) / name).write_bytes(files[name])
        written = load_model(check_folder(Path(folder)))
    inputs = example(fit.ours.shape)
    with torch.inference_mode():
        expected: Tensor = model(*inputs)
        found = answer_of(written, fit, inputs)
    if found.shape != expected.shape:
        return float("inf")
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1))


def example(shape: Shape, n: int = 3) -> tuple[Tensor, ...]:
    """Return inputs without padding: random tokens, or pictures of noise."""
    import torch

    generator = torch.Generator().manual_seed(0)
    if isinstance(shape, TextShape):
        first = min(len(SPECIALS), shape.src_vocabulary - 1, shape.tgt_vocabulary - 1)
        src = torch.randint(first, shape.src_vocabulary, (n, 7), generator=generator)
        tgt = torch.randint(first, shape.tgt_vocabulary, (n, 5), generator=generator)
        tgt[:, 0] = BOS
        return (src if shape.has_source else src[:, :0]), tgt
    size = shape.image_size
    return (torch.randn(n, shape.channels, size, size, generator=generator),)


_TASKS = {
    "AutoModelForCausalLM": "text-generation",
    "AutoModelForImageClassification": "image-classification",
}


def model_card(run: Run, data: Carried, fit: Fit, *, step: int, has_tokenizer: bool) -> str:
    """Return README.md, the model card. step: of the weights."""
    auto = fit.architecture.auto
    title = " ".join(run.meta.name.split()) or "Model"
    lines = [
        "---",
        "library_name: transformers",
        f"pipeline_tag: {_TASKS[auto]}",
        "---",
        "",
        f"# {title}",
        "",
        summary(run),
        f"These are the weights of step {step:,}.",
        "",
        f"The architecture is Transformers' `{fit.architecture.model_class}`; no other code is "
        "needed:",
        "",
        "```python",
        _code(fit, data, has_tokenizer),
        "```",
        "",
    ]
    lines += [f"- {note}" for note in _notes(fit, has_tokenizer=has_tokenizer)]
    return "\n".join(lines).rstrip() + "\n"


def _code(fit: Fit, data: Carried, has_tokenizer: bool) -> str:
    from tfm_core.pretrained.writing import first_target

    auto = fit.architecture.auto
    if isinstance(fit.ours.shape, ImageShape):
        return _picture_code(auto, data, fit.ours.shape)
    if not has_tokenizer:
        return f'from transformers import {auto}\n\nmodel = {auto}.from_pretrained(".")'
    head = dedent(f"""\
        from transformers import {auto}, AutoTokenizer

        model = {auto}.from_pretrained(".")
        tokenizer = AutoTokenizer.from_pretrained(".")
        inputs = tokenizer({json.dumps(data.example, ensure_ascii=False)}, return_tensors="pt")
    """)
    from_here = "[inputs.input_ids.size(1) :]" if first_target(fit) > 0 else ""
    return head + dedent(f"""\
        answer = model.generate(**inputs, do_sample=False)[0]{from_here}
        print(tokenizer.decode(answer, skip_special_tokens=True))""")


def _picture_code(auto: str, data: Carried, shape: ImageShape) -> str:
    mean, std = list(data.mean), list(data.std)
    sizes = f"{shape.channels}, {shape.image_size}, {shape.image_size}"
    return dedent(f"""\
        import torch
        from transformers import {auto}

        model = {auto}.from_pretrained(".")
        mean = torch.tensor({mean}).view(-1, 1, 1)
        std = torch.tensor({std}).view(-1, 1, 1)
        pixels = torch.zeros({sizes})  # (channels, height, width), from 0 to 1
        answer = model(pixel_values=((pixels - mean) / std)[None]).logits.argmax(-1)
        print(model.config.id2label[int(answer)])""")


def _notes(fit: Fit, *, has_tokenizer: bool) -> list[str]:
    """Return how the folder differs from the run's own weights, in sentences."""
    from tfm_core.pretrained.writing import first_target

    notes, ours, form = [], fit.ours, fit.form
    if form.width > ours.width:
        notes.append(
            f"The run's model is {ours.width} wide and has a bias in its output layer, which GPT-2 "
            f"lacks. Here it is {form.width} wide: one of the further dimensions holds a 1, whose "
            "column of the output matrix is that bias."
        )
    was, now = (getattr(one.model, "position", "") for one in (ours, form))
    if was != now:
        rows = getattr(form.model, "max_len", None) or "all"
        notes.append(
            f"Its positions ({was}) are a table here, of {rows} rows: as many tokens can be read."
        )
    if isinstance(ours.shape, TextShape):
        if first := first_target(fit):
            notes.append(
                f"Words of the answer have the ids from {first} on; those of the source are never "
                "written."
            )
        if not has_tokenizer:
            notes.append(
                "There is no tokenizer: some pieces, from which others are merged, have no ids."
            )
        notes.append("Mask padding (`attention_mask`), as the tokenizer does.")
    return notes

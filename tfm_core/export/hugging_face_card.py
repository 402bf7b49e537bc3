"""README.md of a Hugging Face folder: its model card."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import TYPE_CHECKING

from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.export.readme import summary
from tfm_core.runs.run import Run
from tfm_core.trace.source.carried import Carried

if TYPE_CHECKING:
    from tfm_core.pretrained.architectures import Fit

_TASKS = {
    "AutoModelForCausalLM": "text-generation",
    "AutoModelForImageClassification": "image-classification",
}


def card(run: Run, data: Carried, fit: Fit, *, step: int, has_tokenizer: bool) -> str:
    """Return the text. step: of the weights."""
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
    from_here = "[inputs.input_ids.size(1) :]" if _is_joined(fit) else ""
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


def _is_joined(fit: Fit) -> bool:
    from tfm_core.pretrained.writing import first_target

    return first_target(fit) > 0


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

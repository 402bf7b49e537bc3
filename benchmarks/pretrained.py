"""A model of GPT-2 small's size from a folder: all its heads on 256 tokens, beside Transformers.

The weights are random, and the logits of both must be equal. Time is CPU-seconds on one thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.timing import measure, milliseconds, ratio
from tfm_core.pretrained.model import check_folder, load_model
from tfm_core.probe.capture import capture

LENGTH, WORDS = 256, 50_257
RATIO, MEMORY = "pretrained: all heads", "pretrained: memory"
CONFIG = {
    "model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "vocab_size": WORDS, "bos_token_id": WORDS - 1, "eos_token_id": WORDS - 1,
}  # fmt: skip
_OPEN = """
import resource, sys
from pathlib import Path
from benchmarks.pretrained import look
look(Path(sys.argv[1]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Time a forward pass with all heads, and measure the memory of opening and looking."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "gpt2"
        write_folder(folder)
        yield _memory(folder)
        title = f"GPT-2 small, {LENGTH} tokens, beside Transformers"
        if find_spec("transformers") is None:
            yield Skipped(title, "transformers is not installed (requirements-bench.txt).")
        else:
            yield _times(folder, title, rounds=2 if quick else 10)


def write_folder(folder: Path) -> None:
    """Write a folder of GPT-2 small's size with random weights, and a tokenizer of bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    draw = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=draw) * 0.02

    width = int(str(CONFIG["n_embd"]))
    tensors = {"wte.weight": random(WORDS, width), "wpe.weight": random(1024, width)}
    norms = ["ln_f"]
    for layer in range(int(str(CONFIG["n_layer"]))):
        norms += [f"h.{layer}.ln_1", f"h.{layer}.ln_2"]
        for name, rows, columns in (
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ):
            tensors[f"h.{layer}.{name}.weight"] = random(rows, columns)
            tensors[f"h.{layer}.{name}.bias"] = random(columns)
    for name in norms:
        tensors[f"{name}.weight"] = torch.ones(width)
        tensors[f"{name}.bias"] = torch.zeros(width)
    save_file(
        {f"transformer.{name}": value for name, value in tensors.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    vocabulary = {one: i for i, one in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


def look(folder: Path) -> None:
    """Open a folder as a run and read a text of LENGTH tokens, as the page Attention does."""
    from tfm_core.data.corpus.task import read_text
    from tfm_core.data.own import place
    from tfm_core.export.opening import open_run
    from tfm_core.inspect.attention.own_example import look_at_text
    from tfm_core.runs.store import RunStore

    store = RunStore(folder.parent / "runs", recorded=None)
    run = open_run(folder, store)
    with place.below(store.root):
        example = look_at_text(run, "".join(one for one in read_text() if one.isascii())[:LENGTH])
    assert len(example.attention) == CONFIG["n_layer"]


def _memory(folder: Path) -> Table:
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, str(folder)], capture_output=True, text=True, check=True
    )
    gib = float(done.stdout.split()[-1])
    return Table(
        f"Opening a folder of GPT-2 small's size and reading {LENGTH} tokens with all heads",
        ["most memory of the process", "target"],
        [[f"{gib:.2f} GiB", goal_cell(MEMORY, gib)]],
        ["With all that is imported; on Linux."],
        {MEMORY: Figure(gib)},
    )


def _times(folder: Path, title: str, *, rounds: int) -> Table:
    import transformers

    from tfm_core.data.torchvision_import import torchvision  # noqa: F401  it imports that: mended

    ours = load_model(check_folder(folder))
    theirs: Any = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    eager: Any = transformers.GPT2LMHeadModel.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    ids = torch.randint(WORDS, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    nothing = ids[:, :0]
    with torch.inference_mode():
        torch.testing.assert_close(ours(nothing, ids), theirs(ids).logits, atol=1e-4, rtol=0)

    @torch.inference_mode()
    def plain() -> Any:
        return ours(nothing, ids)

    def recorded() -> Any:
        with capture(ours, only={"weights", "mask"}) as cache:
            ours(nothing, ids)
        return cache

    @torch.inference_mode()
    def forward() -> Any:
        return theirs(ids)

    @torch.inference_mode()
    def attentions() -> Any:
        return eager(ids, output_attentions=True)

    ways = {
        "ours, logits alone": plain,
        "ours, with all heads": recorded,
        "Transformers, logits alone": forward,
        "Transformers, with all heads": attentions,
    }
    seconds = measure(ways, rounds=rounds, warmup=1)
    base = seconds["Transformers, logits alone"]
    gain = ratio(seconds["ours, with all heads"], base)
    rows = [
        [
            name,
            milliseconds(values).show(digits=0),
            ratio(values, base).show("x", 2),
            goal_cell(RATIO, gain.median) if name == "ours, with all heads" else "",
        ]
        for name, values in seconds.items()
    ]
    return Table(
        title,
        ["", "CPU-milliseconds", "times Transformers' logits", "target"],
        rows,
        [f"fp32; transformers {transformers.__version__}; logits equal to 1e-4."],
        {RATIO: Figure(gain.median)},
    )

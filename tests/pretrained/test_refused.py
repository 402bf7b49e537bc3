"""What cannot be opened is refused in a sentence, before a model is made of half of it."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.models_of_transformers import FOLDERS, IDS
from tfm_core.data.opened_folder import Unopenable
from tfm_core.pretrained.model import check_folder, load_model

pytestmark = pytest.mark.quick


@pytest.fixture
def folder(tmp_path):
    target = tmp_path / "model"
    shutil.copytree(FOLDERS / "gpt2", target)
    return target


def refusal(folder, **settings):
    with pytest.raises(Unopenable) as caught:
        check_folder(folder, **settings)
    return str(caught.value)


def weights(folder):
    return load_file(folder / "model.safetensors")


def write(folder, tensors, name="model.safetensors"):
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / name)


def configure(folder, **changes):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | changes))


def test_names_of_wrappers_are_stripped(folder):
    expected = load_model(check_folder(folder))(IDS[:, :0], IDS)
    tensors = {f"module._orig_mod.{name}": one for name, one in weights(folder).items()}
    write(folder, tensors)
    assert torch.equal(load_model(check_folder(folder))(IDS[:, :0], IDS), expected)


def test_names_without_the_base_are_the_same_model(folder):
    expected = load_model(check_folder(folder))(IDS[:, :0], IDS)
    write(folder, {name.removeprefix("transformer."): one for name, one in weights(folder).items()})
    assert torch.equal(load_model(check_folder(folder))(IDS[:, :0], IDS), expected)


def shard(folder):
    tensors = weights(folder)
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    mapped = {name: f"model-0000{1 + (i > 9)}-of-00002.safetensors" for i, name in enumerate(names)}
    for file in set(mapped.values()):
        write(folder, {name: tensors[name] for name in names if mapped[name] == file}, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": mapped}))
    return mapped


def test_shards_are_one_model(folder):
    expected = load_model(check_folder(folder))(IDS[:, :0], IDS)
    shard(folder)
    assert torch.equal(load_model(check_folder(folder))(IDS[:, :0], IDS), expected)


@pytest.mark.parametrize("file", ["../outside.safetensors", "/etc/passwd", 3, "weights.bin", ""])
def test_an_index_names_files_of_its_folder_alone(folder, file):
    mapped = shard(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": mapped | {"transformer.wte.weight": file}}))
    assert "index.json" in refusal(folder)


def test_an_index_of_other_tensors_is_refused(folder):
    mapped = shard(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": mapped | {"another": min(mapped.values())}}))
    assert "index.json" in refusal(folder)
    swapped = dict(zip(mapped, reversed(mapped.values()), strict=True))
    index.write_text(json.dumps({"weight_map": swapped}))
    assert "index.json" in refusal(folder)
    index.write_text('{"weight_map": {}}')
    assert "index.json" in refusal(folder)


def test_a_missing_or_truncated_shard_is_named(folder):
    last = max(shard(folder).values())
    content = (folder / last).read_bytes()
    for cut in (content[:-8], content[:20], b""):
        (folder / last).write_bytes(cut)
        assert last in refusal(folder)
    (folder / last).unlink()
    assert last in refusal(folder)


def test_size_is_bounded_before_anything_is_loaded(folder):
    assert "limit" in refusal(folder, most=1000)
    checked = check_folder(folder)
    assert checked.folder.n_bytes == checked.n_bytes == 4 * checked.n_parameters


def test_a_file_of_ten_gigabytes_is_refused_unread(folder):
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(10 * 2**30)  # sparse: it takes no room
    assert "10.0 GiB" in refusal(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_pointer_of_git_lfs_is_called_one(folder, name):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    (folder / name).write_text(pointer)
    assert "run “git lfs pull”" in refusal(folder)


def test_a_pickle_is_never_read(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "pickle" in refusal(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert name in refusal(folder)


def test_a_folder_that_is_none_is_said(tmp_path):
    assert "nowhere" in refusal(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    assert "file" in refusal(tmp_path / "file")


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "[" * 100_000, "\xff"])
def test_a_config_that_is_no_object_is_refused(folder, text):
    (folder / "config.json").write_text(text, encoding="latin-1")
    assert "config.json" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"model_type": "mamba"}, "mamba"),
        ({"model_type": None}, "gpt2, llama, bert, vit, t5"),
        ({"model_type": ["gpt2"]}, "gpt2"),
        ({"auto_map": {"AutoModel": "modeling.Mine"}}, "code"),
        ({"quantization_config": {"bits": 4}}, "quantised"),
        ({"n_embd": -12}, "n_embd"),
        ({"n_embd": "12"}, "n_embd"),
        ({"n_embd": None, "hidden_size": None}, "n_embd"),
        ({"n_layer": 10**9}, "n_layer"),
        ({"n_layer": 97}, "n_layers"),
        ({"n_head": 5}, "n_heads"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon"),
        ({"activation_function": "swish"}, "activation_function"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
    ],
)
def test_a_config_of_no_model_here_is_refused_in_a_sentence(folder, changes, word):
    configure(folder, **changes)
    assert word in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"n_layer": 3}, "missing"),
        ({"n_layer": 1}, "not part of"),
        ({"vocab_size": 38}, "wte"),
        ({"n_positions": 12}, "wpe"),
        ({"n_embd": 24}, "shape"),
        ({"n_inner": 47}, "c_fc"),
    ],
)
def test_a_config_of_another_model_is_refused(folder, changes, word):
    configure(folder, **changes)
    assert word in refusal(folder)


def test_missing_unexpected_and_doubled_tensors_are_named(folder):
    tensors = weights(folder)
    lost = {name: one for name, one in tensors.items() if "ln_f" not in name}
    write(folder, lost)
    assert refusal(folder).startswith("2 tensors")
    write(folder, tensors | {"transformer.adapter": torch.zeros(2)})
    assert "adapter" in refusal(folder)
    write(folder, tensors | {"module.transformer.ln_f.bias": torch.zeros(12)})
    assert "ln_f.bias" in refusal(folder)
    write(folder, tensors | {"ln_f.bias": torch.zeros(12)})
    assert "ln_f.bias" in refusal(folder)


@pytest.mark.parametrize(
    ("name", "front", "word"),
    [
        ("llama", "lm_head.", "no output layer over words"),
        ("t5", "decoder.", "T5's encoder"),
        ("vit", "classifier.", "no classifier"),
    ],
)
def test_half_a_model_is_called_what_it_is(name, front, word, tmp_path):
    target = shutil.copytree(FOLDERS / name, tmp_path / "model")
    write(target, {key: one for key, one in weights(target).items() if not key.startswith(front)})
    assert word in refusal(target)
    assert "tfm_core.look" in refusal(target)


@pytest.mark.parametrize("shape", [(), (12,), (3, 3, 3), (0, 12), (37, 12, 1)])
def test_wrong_shapes_are_refused(folder, shape):
    write(folder, weights(folder) | {"transformer.wte.weight": torch.zeros(shape)})
    assert "wte" in refusal(folder)
    tensors = weights(folder) | {"transformer.wte.weight": torch.zeros(37, 12)}
    write(folder, tensors | {"transformer.h.1.attn.c_attn.weight": torch.zeros(shape)})
    assert "c_attn" in refusal(folder)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int8, torch.float64, torch.bool])
def test_other_number_formats_are_refused(folder, dtype):
    tensors = weights(folder)
    write(folder, tensors | {"transformer.ln_f.bias": torch.zeros(12).to(dtype)})
    assert "ln_f.bias" in refusal(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_is_refused_when_it_is_loaded(folder, value):
    tensors = weights(folder)
    tensors["transformer.h.1.mlp.c_fc.bias"][3] = value
    write(folder, tensors)
    checked = check_folder(folder)
    with pytest.raises(Unopenable, match="c_fc"):
        load_model(checked)


def test_a_file_that_changes_after_the_check_is_refused(folder):
    checked = check_folder(folder)
    write(folder, weights(folder) | {"transformer.wpe.weight": torch.zeros(0, 12)})
    with pytest.raises(Unopenable, match=r"model\.safetensors"):
        load_model(checked)
    (folder / "model.safetensors").write_bytes(b"gone")
    with pytest.raises(Unopenable, match=r"model\.safetensors"):
        load_model(checked)


def test_heads_that_are_not_opened_are_said(tmp_path):
    target = shutil.copytree(FOLDERS / "bert-for-words", tmp_path / "model")
    assert not check_folder(target).notes
    others = {"cls.seq_relationship.weight": torch.zeros(2, 12), "qa_outputs.bias": torch.zeros(2)}
    write(target, weights(target) | others)
    checked = check_folder(target)
    assert set(checked.left_out) == set(others)
    assert "(cls.seq_relationship, qa_outputs)" in checked.notes[0]

"""Other people's Vision Transformers, built to be the same function as ours.

28x28 grey pictures, 16 patches of 7x7, a CLS token, learned positions, pre-norm blocks with GELU,
one last norm. Each peer has the weights of ours copied in, so its outputs must be ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from tfm_core.config import ViTConfig
from tfm_core.data.torchvision_import import torchvision  # noqa: F401  peers import it: mended
from tfm_core.models.build import ImageShape, build_vit
from tfm_core.models.pictures import VisionTransformer

D_MODEL, N_HEADS, D_FF, PATCH, IMAGE, N_CLASSES = 64, 4, 128, 7, 28, 10
N_TOKENS = (IMAGE // PATCH) ** 2 + 1


def ours(n_layers: int) -> VisionTransformer:
    """Return our model, its weights drawn from torch's generator."""
    config = ViTConfig(
        d_model=D_MODEL,
        n_heads=N_HEADS,
        d_ff=D_FF,
        n_layers=n_layers,
        patch_size=PATCH,
        pooling="cls",
        position="learned",
    )
    return build_vit(config, ImageShape(IMAGE, 1, N_CLASSES))


@dataclass(frozen=True, slots=True)
class Peer:
    """Another's Vision Transformer.

    package: what it needs. build(n_layers): as its makers draw its weights. equal(model, n_layers):
    with the weights of ours, and made the same function where it is none.
    """

    package: str
    build: Callable[[int], nn.Module]
    equal: Callable[[VisionTransformer, int], nn.Module]


class LogitsOnly(nn.Module):
    """A Hugging Face classifier as a function from pictures to logits."""

    def __init__(self, inner: nn.Module) -> None:
        """Wrap a model whose answer has ``logits``."""
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, 1, 28, 28) to (B, classes)."""
        return self.inner(pixel_values=images).logits


class TorchEncoderViT(nn.Module):
    """The usual ViT around ``nn.TransformerEncoder``."""

    def __init__(self, n_layers: int) -> None:
        """Stack torch's own pre-norm layers."""
        super().__init__()
        self.patches = nn.Conv2d(1, D_MODEL, PATCH, stride=PATCH)
        self.cls = nn.Parameter(torch.zeros(1, 1, D_MODEL))
        self.positions = nn.Parameter(torch.zeros(1, N_TOKENS, D_MODEL))
        layer = nn.TransformerEncoderLayer(
            D_MODEL, N_HEADS, D_FF, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, n_layers, nn.LayerNorm(D_MODEL), enable_nested_tensor=False
        )
        self.head = nn.Linear(D_MODEL, N_CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, 1, 28, 28) to (B, classes)."""
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.positions
        return self.head(self.encoder(x)[:, 0])


def _torch_encoder(model: VisionTransformer, n_layers: int) -> nn.Module:
    peer = TorchEncoderViT(n_layers)
    table = {"cls": "cls", "positions": "positions.table", "encoder.norm": "encoder.final_norm"}
    layers = {
        "self_attn.in_proj_": "self_attention.in_projection.",
        "self_attn.out_proj": "self_attention.out_projection",
        "norm1": "self_attention_norm",
        "linear1": "feed_forward.up",
        "linear2": "feed_forward.down",
        "norm2": "feed_forward_norm",
    }
    table |= {"patches": "stem.projection", "head": "head"}
    return _filled(peer, model, table, "encoder.layers.{}.", layers, n_layers)


def _torchvision_drawn(n_layers: int) -> nn.Module:
    from torchvision.models.vision_transformer import VisionTransformer as TheirViT

    peer = TheirViT(IMAGE, PATCH, n_layers, N_HEADS, D_MODEL, D_FF, num_classes=N_CLASSES)
    peer.conv_proj = nn.Conv2d(1, D_MODEL, PATCH, stride=PATCH)  # it knows three channels only
    return peer


def _torchvision(model: VisionTransformer, n_layers: int) -> nn.Module:
    peer = _torchvision_drawn(n_layers)
    _use_epsilon(peer, 1e-5)
    table = {
        "class_token": "cls",
        "encoder.pos_embedding": "positions.table",
        "encoder.ln": "encoder.final_norm",
        "conv_proj": "stem.projection",
        "heads.head": "head",
    }
    layers = {
        "self_attention.in_proj_": "self_attention.in_projection.",
        "self_attention.out_proj": "self_attention.out_projection",
        "ln_1": "self_attention_norm",
        "mlp.0": "feed_forward.up",
        "mlp.3": "feed_forward.down",
        "ln_2": "feed_forward_norm",
    }
    return _filled(peer, model, table, "encoder.layers.encoder_layer_{}.", layers, n_layers)


def _timm_drawn(n_layers: int) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer as TheirViT

    return TheirViT(
        img_size=IMAGE,
        patch_size=PATCH,
        in_chans=1,
        num_classes=N_CLASSES,
        embed_dim=D_MODEL,
        depth=n_layers,
        num_heads=N_HEADS,
        mlp_ratio=D_FF / D_MODEL,
    )


def _timm(model: VisionTransformer, n_layers: int) -> nn.Module:
    peer = _timm_drawn(n_layers)
    _use_epsilon(peer, 1e-5)
    table = {
        "cls_token": "cls",
        "pos_embed": "positions.table",
        "norm": "encoder.final_norm",
        "patch_embed.proj": "stem.projection",
        "head": "head",
    }
    layers = {
        "attn.qkv": "self_attention.in_projection",
        "attn.proj": "self_attention.out_projection",
        "norm1": "self_attention_norm",
        "mlp.fc1": "feed_forward.up",
        "mlp.fc2": "feed_forward.down",
        "norm2": "feed_forward_norm",
    }
    return _filled(peer, model, table, "blocks.{}.", layers, n_layers)


def _vit_pytorch_drawn(n_layers: int) -> nn.Module:
    from vit_pytorch import ViT as TheirViT

    return TheirViT(
        image_size=IMAGE,
        patch_size=PATCH,
        num_classes=N_CLASSES,
        dim=D_MODEL,
        depth=n_layers,
        heads=N_HEADS,
        mlp_dim=D_FF,
        channels=1,
        dim_head=D_MODEL // N_HEADS,
    )


def _vit_pytorch(model: VisionTransformer, n_layers: int) -> nn.Module:
    peer = _vit_pytorch_drawn(n_layers)
    # two norms more around the patches and no bias on query, key and value: made equal here
    peer.to_patch_embedding[1] = nn.Identity()
    peer.to_patch_embedding[3] = nn.Identity()
    for attention, _ in peer.transformer.layers:
        attention.to_qkv = nn.Linear(D_MODEL, 3 * D_MODEL)
    table = {
        "cls_token": "cls",
        "pos_embedding": "positions.table",
        "transformer.norm": "encoder.final_norm",
        "to_patch_embedding.2": "stem.projection",
        "mlp_head": "head",
    }
    layers = {
        "0.to_qkv": "self_attention.in_projection",
        "0.to_out.0": "self_attention.out_projection",
        "0.norm": "self_attention_norm",
        "1.net.1": "feed_forward.up",
        "1.net.4": "feed_forward.down",
        "1.net.0": "feed_forward_norm",
    }
    return _filled(peer, model, table, "transformer.layers.{}.", layers, n_layers)


def _hugging_face_drawn(n_layers: int) -> LogitsOnly:
    from transformers import ViTConfig as TheirConfig
    from transformers import ViTForImageClassification as TheirViT

    config = TheirConfig(
        hidden_size=D_MODEL,
        num_hidden_layers=n_layers,
        num_attention_heads=N_HEADS,
        intermediate_size=D_FF,
        image_size=IMAGE,
        patch_size=PATCH,
        num_channels=1,
        num_labels=N_CLASSES,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
    )
    return LogitsOnly(TheirViT._from_config(config, attn_implementation="sdpa"))


def _hugging_face(model: VisionTransformer, n_layers: int) -> nn.Module:
    peer = _hugging_face_drawn(n_layers)
    table = {
        "vit.embeddings.cls_token": "cls",
        "vit.embeddings.position_embeddings": "positions.table",
        "vit.embeddings.patch_embeddings.projection": "stem.projection",
        "vit.layernorm": "encoder.final_norm",
        "classifier": "head",
    }
    layers = {
        "attention.q_proj": "self_attention.in_projection#0",
        "attention.k_proj": "self_attention.in_projection#1",
        "attention.v_proj": "self_attention.in_projection#2",
        "attention.o_proj": "self_attention.out_projection",
        "layernorm_before": "self_attention_norm",
        "mlp.fc1": "feed_forward.up",
        "mlp.fc2": "feed_forward.down",
        "layernorm_after": "feed_forward_norm",
    }
    _filled(peer.inner, model, table, "vit.layers.{}.", layers, n_layers)
    return peer


def _use_epsilon(model: nn.Module, epsilon: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = epsilon


def _filled(
    peer: nn.Module,
    model: VisionTransformer,
    table: dict[str, str],
    prefix: str,
    layers: dict[str, str],
    n_layers: int,
) -> nn.Module:
    """Copy every weight of ``model`` into ``peer``; names are translated by their beginnings.

    ``#1`` behind one of our names means the second of its three row blocks. Raises KeyError where
    a parameter of the peer has no counterpart.
    """
    for number in range(n_layers):
        table = table | {
            f"{prefix.format(number)}{theirs}": f"encoder.layers.{number}.{mine}"
            for theirs, mine in layers.items()
        }
    state = model.state_dict()
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            begin = max((b for b in table if name.startswith(b)), key=len, default=None)
            if begin is None:
                raise KeyError(f"{name} has no counterpart")
            mine, _, block = table[begin].partition("#")
            value = state[mine + name[len(begin) :]]
            value = value.chunk(3)[int(block)] if block else value
            parameter.copy_(value.reshape(parameter.shape))
    return peer


PEERS: dict[str, Peer] = {
    "timm": Peer("timm", _timm_drawn, _timm),
    "vit-pytorch": Peer("vit_pytorch", _vit_pytorch_drawn, _vit_pytorch),
    "Hugging Face transformers": Peer("transformers", _hugging_face_drawn, _hugging_face),
    "torchvision": Peer("torch", _torchvision_drawn, _torchvision),
    "nn.TransformerEncoder": Peer("torch", TorchEncoderViT, _torch_encoder),
}


def is_installed(name: str) -> bool:
    """Return whether the package that a peer needs is there."""
    return find_spec(PEERS[name].package) is not None

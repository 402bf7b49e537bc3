"""Other people's Vision Transformers in the sizes of ours, as their makers draw their weights.

28x28 grey pictures, 16 patches of 7x7, a CLS token, learned positions, pre-norm blocks with GELU,
one last norm.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from torch import Tensor, nn

from tfm_core.data.torchvision_import import torchvision  # noqa: F401  peers import it: mended

D_MODEL, N_HEADS, D_FF, PATCH, IMAGE, N_CLASSES = 64, 4, 128, 7, 28, 10


class LogitsOnly(nn.Module):
    """A Hugging Face classifier as a function from pictures to logits."""

    def __init__(self, inner: nn.Module) -> None:
        """Wrap a model whose answer has ``logits``."""
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, 1, 28, 28) to (B, classes)."""
        return self.inner(pixel_values=images).logits


def _timm(n_layers: int) -> nn.Module:
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


def _vit_pytorch(n_layers: int) -> nn.Module:
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


def _hugging_face(n_layers: int) -> LogitsOnly:
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


PEERS: dict[str, tuple[str, Callable[[int], nn.Module]]] = {
    "timm": ("timm", _timm),
    "vit-pytorch": ("vit_pytorch", _vit_pytorch),
    "Hugging Face transformers": ("transformers", _hugging_face),
}
"""By name: the package that a peer needs, and what makes one with so many layers."""


def build(name: str, n_layers: int) -> nn.Module:
    """Return a peer with so many layers."""
    return PEERS[name][1](n_layers)


def is_installed(name: str) -> bool:
    """Return whether the package that a peer needs is there."""
    return find_spec(PEERS[name][0]) is not None

"""What answers for a whole text in a generated file: BERT's pooler, or one label, as text."""

from __future__ import annotations

from tfm_core.config import TransformerConfig
from tfm_core.config.shape import TextShape
from tfm_core.inspect.source_layers import class_, method


def output_bias(config: TransformerConfig, shape: TextShape) -> str:
    """Return what the output layer is told of its bias; nothing where it has one."""
    return "" if config.bias and shape.output_bias else ", bias=False"


def pooler(config: TransformerConfig) -> str:
    """Return the source of the class ``Pooler``."""
    bias = "" if config.bias else ", bias=False"
    head = '''
    class Pooler(nn.Module):
        """The first token's vector through a square layer and a tanh."""

        def __init__(self):
            super().__init__()
    '''
    init = class_(head, f"self.dense = nn.Linear(D_MODEL, D_MODEL{bias})")
    return init + "\n" + method("def forward(self, x):", ["return self.dense(x[:, 0]).tanh()"])


def label_output(config: TransformerConfig, shape: TextShape) -> str:
    """Return the source of the class ``LabelOutput``."""
    head = '''
    class LabelOutput(nn.Module):
        """Scores for the labels, the last words of the vocabulary; no other can be said."""

        def __init__(self):
            super().__init__()
    '''
    forward = [
        "scores = self.labels(x)",
        "lowest = torch.finfo(scores.dtype).min",
        "return F.pad(scores, (TGT_WORDS - N_LABELS, 0), value=lowest)  # (B, 1, TGT_WORDS)",
    ]
    init = class_(head, f"self.labels = nn.Linear(D_MODEL, N_LABELS{output_bias(config, shape)})")
    return f"{init}\n" + method("def forward(self, x):", forward)

"""What stands before the stacks in a generated file: tokens, positions, segments, as text."""

from __future__ import annotations

from tfm_core.config import CaptionerConfig, TransformerConfig, ViTConfig
from tfm_core.config.shape import Shape, TextShape
from tfm_core.inspect.source.layers import class_, method, norm
from tfm_core.inspect.source.parts import positions_class


def output_bias(config: TransformerConfig, shape: TextShape) -> str:
    """Return the argument that turns off the bias of the last layer; empty where it has one."""
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


def positions(config: TransformerConfig, shape: Shape) -> str:
    """Return the source of the class ``Positions``; empty where nothing is added to embeddings."""
    is_pictured = isinstance(config, ViTConfig | CaptionerConfig)
    return positions_class("Positions", config.position, "N_TOKENS" if is_pictured else "MAX_LEN")


def word_positions(config: CaptionerConfig) -> str:
    """Return the source of the class ``WordPositions``; empty where nothing is added."""
    return positions_class("WordPositions", config.text_position, "MAX_LEN")


TOKEN_EMBEDDING = class_(
    '''
    class TokenEmbedding(nn.Module):
        """Ids to vectors, times sqrt(D_MODEL)."""

        def __init__(self, n_tokens):
            super().__init__()
            self.table = nn.Embedding(n_tokens, D_MODEL)
            nn.init.normal_(self.table.weight, std=D_MODEL**-0.5)

        def forward(self, ids):
    ''',
    "return self.table(ids) * math.sqrt(D_MODEL)",
)


def token_embedding(shape: TextShape) -> str:
    """Return the source of the class ``TokenEmbedding``, scaled or not."""
    if shape.scale_embedding:
        return TOKEN_EMBEDDING
    plain = TOKEN_EMBEDDING.replace(" * math.sqrt(D_MODEL)", "").replace(
        ", times sqrt(D_MODEL)", ""
    )
    return plain.replace("std=D_MODEL**-0.5", "std=0.02")


def segments(config: TransformerConfig) -> str:
    """Return the source of the class ``Segments``."""
    made, total = norm(config), "x + self.table.weight[0]"
    head = f'''
    class Segments(nn.Module):
        """Adds the vector of the first segment{", and normalises" if made else ""}."""

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(N_SEGMENTS, D_MODEL)
            nn.init.normal_(self.table.weight, std=D_MODEL**-0.5)
    '''
    init = class_(head, f"self.norm = {made}" if made else "")
    out = f"self.norm({total})" if made else total
    return init.rstrip() + "\n\n" + method("def forward(self, x):", [f"return {out}"])

"""What the model classes of a generated file share: positions, the frame of a class, as text."""

from __future__ import annotations

from tfm_core.config import TransformerConfig
from tfm_core.inspect.source.layers import AttentionForm, class_, method
from tfm_core.variants.positions import POSITIONS


def positions_class(name: str, position: str, length: str) -> str:
    """Return the source of a class that adds positions; empty where none are added.

    length: the name of the constant with the rows of a learned table.
    """
    added = POSITIONS[position].added
    if added is None:
        return ""
    head = f'''
        class {name}(nn.Module):
            """{added.doc}"""
        '''
    if added.init is None:
        head += "\n            def forward(self, x):"
        return class_(head, added.forward)
    head += "\n            def __init__(self):\n                super().__init__()"
    init = class_(head, added.init.format(length=length))
    return init + "\n" + method("def forward(self, x):", [added.forward])


def kept(ids: str, pad_id: int | None) -> str:
    """Return an expression that is True where a token stands, and False at padding, (B, T)."""
    return f"torch.ones_like({ids}, dtype=torch.bool)" if pad_id is None else f"{ids} != PAD"


def called(form: AttentionForm, *arguments: str) -> str:
    """Return the head of ``forward``; the weights can be asked for where they are written out."""
    more = ["return_weights=False"] if form == "written" else []
    return f"def forward({', '.join(['self', *arguments, *more])}):"


def answered(form: AttentionForm, logits: str, sizes: str) -> list[str]:
    """Return the last lines of ``forward``; sizes: of the answer, for a comment."""
    if form == "fused":
        return [f"return {logits}  # {sizes}"]
    return [
        f"answer = {logits}  # {sizes}",
        "return (answer, attention_weights(self)) if return_weights else answer",
    ]


def placed(config: TransformerConfig, name: str, x: str, position: str | None = None) -> str:
    """Return an expression that adds positions, where they are added, and drops out.

    position: the kind, where it is not the configuration's ``position``.
    """
    x = f"self.{name}({x})" if adds(position or config.position) else x
    return f"self.dropout({x})" if config.dropout else x


def adds(position: str) -> bool:
    """Return whether a kind of positions is added to embeddings."""
    return POSITIONS[position].is_added


def model(doc: str, init: list[str], *methods: str, has_dropout: bool) -> str:
    """Return the source of the class ``Model``: its parts, then its methods."""
    head = f'''
    class Model(nn.Module):
        """{doc}"""

        def __init__(self):
            super().__init__()
    '''
    init += ["self.dropout = nn.Dropout(DROPOUT)"] if has_dropout else []
    return "\n".join([class_(head, "\n".join(init)), *methods])

"""What the model classes of a generated file share: positions, the frame of a class, as text."""

from __future__ import annotations

from tfm_core.config import BlockConfig
from tfm_core.inspect.source.layers import class_, method


def positions_class(name: str, position: str, length: str) -> str:
    """Return the source of a class that adds positions; empty where none are added.

    length: the name of the constant with the rows of a learned table.
    """
    if position == "learned":
        head = f'''
            class {name}(nn.Module):
                """Adds one trained vector a position."""

                def __init__(self):
                    super().__init__()
            '''
        table = f"self.table = nn.Parameter(0.02 * torch.randn({length}, D_MODEL))"
        forward = method("def forward(self, x):", ["return x + self.table[: x.size(1)]"])
        return class_(head, table) + "\n" + forward
    if position == "sinusoidal":
        return class_(
            f'''
            class {name}(nn.Module):
                """Adds fixed sine and cosine waves."""

                def forward(self, x):
            ''',
            "return x + sinusoidal(x.size(1), D_MODEL).to(x)",
        )
    if position == "sinusoidal-2d":
        return class_(
            f'''
            class {name}(nn.Module):
                """Adds waves: half of the dimensions tell the row of a patch, half its column."""

                def forward(self, x):
            ''',
            "waves = sinusoidal(SIDE, D_MODEL // 2)\n"
            "rows = waves[:, None].expand(SIDE, SIDE, -1)\n"
            "columns = waves[None].expand(SIDE, SIDE, -1)\n"
            "grid = torch.cat([rows, columns], -1).flatten(0, 1)\n"
            "return x + F.pad(grid, (0, 0, x.size(1) - SIDE**2, 0)).to(x)",
        )
    return ""


def placed(config: BlockConfig, name: str, x: str, position: str | None = None) -> str:
    """Return an expression that adds positions, where they are added, and drops out.

    position: the kind, where it is not the configuration's ``position``.
    """
    x = f"self.{name}({x})" if adds(str(position or getattr(config, "position", "none"))) else x
    return f"self.dropout({x})" if config.dropout else x


def adds(position: str) -> bool:
    """Return whether a kind of positions is added to embeddings."""
    return position in {"learned", "sinusoidal", "sinusoidal-2d"}


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

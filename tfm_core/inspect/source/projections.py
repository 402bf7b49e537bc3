"""The matrices of an attention in a generated file: those that the configuration has, as text."""

from __future__ import annotations

from textwrap import dedent

from tfm_core.config import TransformerConfig
from tfm_core.variants.projections import PROJECTIONS


def classes(config: TransformerConfig) -> str:
    """Return the source of what the matrices need: a class where each head has its own slice."""
    if not PROJECTIONS[config.projections].is_sliced:
        return ""
    bias = "nn.Parameter(torch.zeros(3 * D_MODEL))" if config.attention_bias else "None"
    return dedent(f'''\
        class SlicedProjection(nn.Module):
            """Query, key and value of heads that each see their own slice of the vector only."""

            def __init__(self):
                super().__init__()
                self.heads = nn.Parameter(torch.empty(3, N_HEADS, D_HEAD, D_HEAD))
                self.bias = {bias}
                bound = math.sqrt(3 / D_HEAD)
                nn.init.uniform_(self.heads, -bound, bound)

            @property
            def weight(self):
                """The whole matrix (3 * D_MODEL, D_MODEL), zero outside the slices."""
                return torch.cat([torch.block_diag(*part) for part in self.heads])

            def forward(self, x):
                return F.linear(x, self.weight, self.bias)
        ''')


def made(config: TransformerConfig) -> list[str]:
    """Return the lines that make the matrices."""
    kind = PROJECTIONS[config.projections]
    bias = "" if config.attention_bias else ", bias=False"
    lines = ["self.in_projection = SlicedProjection()  # query, key, value"]
    names = []
    if not kind.is_sliced:
        lines = [f"self.in_projection = nn.Linear(D_MODEL, 3 * D_MODEL{bias})  # query, key, value"]
        names.append("in_projection")
    if kind.has_output:
        lines.append(f"self.out_projection = nn.Linear(D_MODEL, D_MODEL{bias})")
        names.append("out_projection")
    lines += [f"nn.init.xavier_uniform_(self.{name}.weight)" for name in names]
    if config.query_key_gain != 1.0:
        drawn = "heads[:2]" if kind.is_sliced else "weight[: 2 * D_MODEL]"
        lines += [
            "with torch.no_grad():  # queries and keys, so that scores begin larger",
            f"    self.in_projection.{drawn} *= {config.query_key_gain:g}",
        ]
    if config.attention_bias:
        lines += [f"nn.init.zeros_(self.{name}.bias)" for name in names]
    return lines


def mixed(config: TransformerConfig) -> str:
    """Return the lines behind the heads: side by side, and mixed where a matrix does that."""
    merged = "heads.transpose(1, 2).flatten(2)"
    if PROJECTIONS[config.projections].has_output:
        return f"return self.out_projection({merged})"
    return f"return {merged}  # side by side: no matrix mixes the heads"

"""T5's relative bias: a trained number for each bucket of offsets, Raffel et al. 2020."""

from textwrap import dedent

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.position import (
    Function,
    Inside,
    Look,
    Position,
    always_possible,
)

_BUCKET = Function(
    "bucket",
    dedent('''\
    def bucket(offsets, is_causal):
        """The bucket of each offset, key - query: the near ones exact, up to 128 by logarithm."""
        n = 32 if is_causal else 16  # of 32: behind and ahead share them
        distance = (-offsets).clamp(min=0) if is_causal else offsets.abs()
        first = torch.zeros_like(offsets) if is_causal else n * (offsets > 0)
        exact = n // 2
        further = (distance.clamp(min=1) / exact).log() / math.log(128 / exact) * (n - exact)
        return first + distance.where(distance < exact, (exact + further.long()).clamp(max=n - 1))
    '''),
)

_RELATIVE_BIAS = Function(
    "RelativeBias",
    dedent('''\
    class RelativeBias(nn.Module):
        """A trained number a head for the bucket of each offset (Raffel et al. 2020)."""

        def __init__(self, is_causal):
            super().__init__()
            self.is_causal = is_causal
            self.table = nn.Parameter(torch.randn(32, N_HEADS) * D_MODEL**-0.5)

        def forward(self, x):
            at = torch.arange(x.size(1), device=x.device)
            chosen = bucket(at[None, :] - at[:, None], self.is_causal)
            return F.embedding(chosen, self.table).movedim(-1, 0)  # (H, T, T)
    '''),
)

T5_BIAS = Position(
    name="t5-bias",
    label=N_("T5 bias"),
    help=N_("Adds a trained number per bucket of offsets to the scores (T5)."),
    source="Raffel et al. 2020, section 2.1",
    acts_on="scores",
    layer="tfm_core.layers.relative:BucketBias",
    made_of=("n_heads", "d_model", "is_causal"),
    needs_grid=False,
    is_learned=True,
    impossible=always_possible,
    functions=(_BUCKET, _RELATIVE_BIAS),
    topic="position-t5-bias",
    words=Paragraph("variants/walk-t5-bias"),
    look=Look("ochre", "longdashdot", "hexagram"),
    added=None,
    inside=Inside(
        query=r"q_i^\top",
        key="k_j",
        plus=r" + b_{h,\,\beta(j - i)}",
        where=N_(r"&\beta(j - i)\text{: the bucket of the offset, one of }32"),
        title=N_("T5's bias"),
        topic="t5-bias",
        words=Paragraph("variants/t5-bias"),
        parameters={"table": ("n_buckets", "n_heads")},
        kept_once="2 {queries} {length}",
        by_distance=None,
        init="RelativeBias({is_causal})",
        made="self.relative(x)",
        argument="bias",
        turn=None,
    ),
)

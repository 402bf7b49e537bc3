"""Stacks of blocks as parts: attention, feed-forward, residuals and norms, block by block.

What autograd keeps of them is counted as in ``layers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from tfm_core.anatomy.feed_forward import feed_forward, mixture
from tfm_core.anatomy.formula import Formula, formula
from tfm_core.anatomy.layers import Maker, _class_of, tensor
from tfm_core.anatomy.names import names_of
from tfm_core.anatomy.part import (
    Attention,
    Part,
    Saved,
    Tensor,
    Work,
)
from tfm_core.choices.config import TransformerConfig
from tfm_core.choices.variants.forms import CAUSALITIES, PROJECTIONS, RESIDUALS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS, Position
from tfm_core.choices.variants.sinks import SINKS

OPENED: Mapping[str, tuple[str, ...]] = {
    "self_attention": (
        "queries-keys-values",
        "split",
        "scores",
        "masking",
        "softmax",
        "weighted-sum",
        "merge",
    ),
    "self_attention_residual": ("add-norm",),
    "feed_forward": ("feed-forward",),
}
"""The steps of a walk through a block that is opened, by what they are about."""
WRITING: Mapping[str, tuple[str, ...]] = {
    "self_attention": ("decoder-attention",),
    "cross_attention": ("cross-attention",),
    "feed_forward": ("logits",),
}
"""The same for a decoder that looks back at an encoder, whose blocks are opened already."""


@dataclass(frozen=True, slots=True)
class StackMaker:
    """Makes the blocks of one stack.

    name: encoder or decoder. length: of its tokens, keys: those of the memory, "" without one.
    read: how many of its outputs are read. last_queries: the tokens that supply queries in the last
    block, where the others supply keys and values only. has_padding, has_memory_padding: whether
    its tokens and the memory have padding. has_order: whether a causality hides keys. steps: of the
    walk, by sublayer.
    """

    maker: Maker
    config: TransformerConfig
    name: str
    n_layers: int
    length: str
    keys: str = ""
    read: str = ""
    last_queries: str = ""
    has_padding: bool = True
    has_memory_padding: bool = True
    has_order: bool = False
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OPENED)

    @property
    def relative(self) -> Position | None:
        """The position kind that acts inside attention, if any."""
        kind = POSITIONS[self.config.position]
        return kind if kind.is_inside else None

    @property
    def _windows(self) -> tuple[int, ...]:
        return self.config.windows(self.n_layers)

    @property
    def _order(self) -> str:
        """Which tokens each token sees, by name in CAUSALITIES; "" for a stack that reads."""
        order = self.config.order
        return order.name if self.has_order and order else ""

    @property
    def _d_kv(self) -> str:
        """The width of all keys of a token, as a size; of its values alike."""
        return "d_kv" if self.config.is_grouped else self._d_q

    @property
    def _d_q(self) -> str:
        """The width of all queries of a token, as a size: that of the heads together."""
        return "d_q" if self.config.has_own_width else "d_model"

    @property
    def _is_bias_trained(self) -> bool:
        """Whether training changes what is added to the scores of self-attention."""
        return (
            self.relative is not None
            and self.relative.acts_on == "scores"
            and self.relative.is_learned
        )

    @property
    def _is_copied(self) -> bool:
        """Whether the kernel gets copies of keys and values: for groups, or with one more key."""
        return self.config.is_grouped or SINKS[self.config.sink].is_there

    def _is_explicit(self, *, is_cross: bool) -> bool:
        """Whether PyTorch's CPU keeps the weights of an attention."""
        is_trained = self._is_bias_trained and not is_cross
        return self.config.dropout > 0 or is_trained or SINKS[self.config.sink].is_learned

    def stack(self) -> Part:
        """Return the whole stack, equal blocks folded; it saves itself what follows reads of it."""
        config, length = self.config, self.last_queries or self.length
        n, n_last = self.n_layers, 1 if self.last_queries and self.n_layers > 1 else 0
        blocks = [self._block(0)]
        for _window, layers in groupby(range(1, n - n_last), self._windows.__getitem__):
            first, *others = layers
            blocks.append(replace(self._block(first), repeats=1 + len(others)))
        blocks += [self._block(n - 1)] * n_last
        final: tuple[Part, ...] = ()
        if config.has_final_norm:
            saved = self._norm_saved(length)
            final = (self.maker.norm(f"{self.name}.final_norm", config.norm, length, saved=saved),)
        noise = f"{self.length} d_model" if config.dropout else ""
        inside = None if self.relative is None else self.relative.inside
        saved_once = "" if inside is None else inside.saved_once
        queries = length if self.n_layers == 1 else self.length
        x = tensor("x", self.length, "d_model")
        return Part(
            kind="stack",
            path=self.name,
            layer="Stack",
            inputs=(x, tensor("memory", self.keys, "d_model")) if self.keys else (x,),
            outputs=(tensor("y", length, "d_model"),),
            saved=Saved(
                full=formula(noise),
                products=formula(f"{self.read} d_model" if self.read else ""),
                once=formula(saved_once.format(queries=queries, length=self.length)),
            ),
            steps=("encoder-stack",) if self.name == "encoder" else ("logits",),
            children=(*blocks, *final),
        )

    def looking_stack(self) -> Part:
        """Return the stack with one attention to the memory behind it, and none in its blocks."""
        alone, memory = replace(self, keys="").stack(), tensor("memory", self.keys, "d_model")
        kept = Saved(products=formula(f"{self.keys} d_model"))  # the memory, which no norm made
        return replace(
            alone,
            inputs=(*alone.inputs, memory),
            saved=Saved.total((alone.saved, kept)),
            children=(*alone.children, self._cross(f"{self.name}.cross_attention", 0)),
        )

    def _block(self, layer: int) -> Part:
        path, config = f"{self.name}.layers.{layer}", self.config
        last_queries = self.last_queries if layer == self.n_layers - 1 else ""
        length = last_queries or self.length
        first = self._attention(f"{path}.self_attention", layer, last_queries)
        normed = self.length if config.norm_first else length
        joined = list(self._joined(path, "self_attention", first, normed, length))
        if self.keys:
            cross = self._cross(f"{path}.cross_attention", layer)
            joined += self._joined(path, "cross_attention", cross, length, length)
        if config.has_feed_forward:
            make = mixture if config.has_experts else feed_forward
            layer_part = make(self.maker, config, f"{path}.feed_forward", length)
            layer_part = replace(layer_part, steps=self.steps["feed_forward"])
            joined += self._joined(path, "feed_forward", layer_part, length, length)
        x = tensor("x", self.length, "d_model")
        return Part(
            kind="block",
            path=path,
            layer="Block",
            inputs=(x, tensor("memory", self.keys, "d_model")) if self.keys else (x,),
            outputs=(tensor("y", length, "d_model"),),
            children=tuple(joined),
        )

    def _joined(
        self, block: str, name: str, sublayer: Part, normed: str, length: str
    ) -> tuple[Part, ...]:
        """Return a sublayer with its norm and its residual connection, in their order.

        Without residuals its output, alone, takes the place of what went in.
        """
        config, path = self.config, f"{block}.{name}_norm"
        x = tensor("x", length, "d_model")
        change: tuple[Tensor, ...] = (tensor(name, length, "d_model"),)
        if config.has_residuals:
            skipped = "norm(x)" if RESIDUALS[config.residual].is_normed(name) else "x"
            change = (tensor(skipped, length, "d_model"), *change)
        residual = Part(
            kind="residual",
            path=block,
            inputs=change,
            outputs=(x,),
            steps=self.steps.get(f"{name}_residual", ()),
        )
        norm: tuple[Part, ...] = ()
        if config.has_norms:
            shared = f"{block}.self_attention_norm"
            tied_to = shared if config.shared_norm and path != shared else ""
            saved = self._norm_saved(normed)
            norm = (self.maker.norm(path, config.norm, normed, saved=saved, tied_to=tied_to),)
        if config.norm_first:
            return (*norm, sublayer, residual)
        return (sublayer, residual, *norm)

    def _norm_saved(self, length: str) -> Saved:
        """Return what a norm keeps of what it reads; what comes out is its reader's."""
        norm = NORMS[self.config.norm]
        n = norm.n_saved(self.maker.sizes["d_model"])
        if norm.saves_input and not self.config.has_residuals:
            # what a sublayer makes is no sum in fp32: the norm reads it, and keeps it, as it is
            return Saved(
                full=formula(f"{n} {length} + -1 {length} d_model"),
                products=formula(f"{length} d_model"),
            )
        return Saved(full=formula(f"{n} {length}"))

    def _attention(self, path: str, layer: int, last_queries: str) -> Attention:
        """Return the self-attention of a block; with ``last_queries`` those tokens alone ask."""
        config, keys, queries = self.config, self.length, last_queries or self.length
        d_q = self._d_q
        projected = f"{queries} {d_q} d_model + 2 {keys} {self._d_kv} d_model"
        made = f"{queries} {d_q} + 2 {keys} {d_q}"
        # all are read by keys and values, and once more in full where those that ask are taken out
        full, products, copies = "", f"{queries} d_model", ""
        if last_queries:
            full, copies = f"{keys} d_model", f"{keys} d_model"
            if not config.has_residuals:  # what comes from the block before is no sum in fp32
                full, products = "", f"{keys} d_model + {queries} d_model"
        is_explicit = self._is_explicit(is_cross=False)
        is_turned = self.relative is not None and self.relative.acts_on == "queries and keys"
        if self._is_copied and not (is_explicit or last_queries or is_turned):
            made += f"+ 2 {keys} d_kv"  # queries are a part of what the projection made
        saved = Saved(
            full=formula(full) + formula(made if is_explicit else ""),
            products=formula(products) + formula("" if is_explicit else made),
            copies=formula(copies),
        )
        return self._attention_part(
            path,
            queries,
            keys,
            formula(projected),
            saved,
            layer,
            is_cross=False,
        )

    def _cross(self, path: str, layer: int) -> Attention:
        """Return the cross-attention of a block; all but the first make a copy of the memory."""
        queries, keys, d_q = self.length, self.keys, self._d_q
        made = f"{queries} {d_q} + 2 {keys} {d_q}"
        is_explicit = self._is_explicit(is_cross=True)
        saved = Saved(
            full=formula(made if is_explicit else ""),
            products=formula(f"{queries} d_model" + ("" if is_explicit else f"+ {made}")),
            copies=formula(f"{keys} d_model" if layer else ""),
        )
        projected = f"{queries} {d_q} d_model + 2 {keys} {self._d_kv} d_model"
        return self._attention_part(
            path, queries, keys, formula(projected), saved, layer, is_cross=True
        )

    def _attention_part(
        self,
        path: str,
        queries: str,
        keys: str,
        projected: Formula,
        saved: Saved,
        layer: int,
        *,
        is_cross: bool,
    ) -> Attention:
        maker, config = self.maker, self.config
        x, memory = tensor("x", queries, "d_model"), tensor("memory", keys, "d_model")
        inputs = (x,) if queries == keys and not is_cross else (x, memory)
        into = self._in_projection(f"{path}.in_projection", inputs, projected, saved, is_cross)
        children: list[Part] = [into, *self._head_norms(path, queries, keys, is_cross)]
        relative = None if is_cross else self.relative
        window = 0 if is_cross else self._windows[layer]
        hides = self._mask(is_cross, window)
        if relative is not None:
            pairs = "" if hides else f"n_heads {queries} {keys}"
            children.append(self._relative(relative, layer, pairs))
        children += self._sink(path)
        if hides:
            children.append(self._mask_part(path, hides, queries, keys, is_cross))
        children.append(self._scores(path, queries, keys, hides, relative, is_cross=is_cross))
        heads = formula(f"{queries} {self._d_q}")
        noise = formula(f"{queries} d_model" if config.dropout else "")
        if PROJECTIONS[config.projections].has_output:
            children.append(
                replace(
                    maker.linear(
                        f"{path}.out_projection",
                        "d_model",
                        self._d_q,
                        queries,
                        bias=config.attention_bias,
                        saved=Saved(products=heads + noise),
                    ),
                    work="cross-attention" if is_cross else "projections",
                )
            )
            heads, noise = Formula(), Formula()
        elif config.dropout or (
            relative is not None
            and relative.acts_on == "scores"
            and (hides or self._is_bias_trained)
        ):
            heads = Formula()  # no product reads them, and what a fused kernel keeps is in scores
        return Attention(
            kind="attention",
            path=path,
            layer="MultiHeadAttention",
            inputs=inputs,
            outputs=(x,),
            saved=Saved(products=heads + noise),
            names=names_of(maker.family, path),
            steps=tuple(
                step for step in self.steps[path.rpartition(".")[2]] if hides or step != "masking"
            ),
            children=tuple(children),
            n_heads=maker.sizes["n_heads"],
            queries=queries,
            keys=keys,
            is_cross=is_cross,
            mask=hides,
            scale=config.scale,
            order="" if is_cross else self._order,
            window=window,
            relative="" if relative is None else relative.name,
            n_kv_heads=config.n_kv_heads if config.is_grouped else 0,
            has_qk_norm=config.qk_norm,
            sink=config.sink,
            d_head=config.d_head,
            has_own_width=config.has_own_width,
        )

    def _sink(self, path: str) -> tuple[Part, ...]:
        """Return the logit of each head that takes the attention no key gets, if it is trained."""
        if not SINKS[self.config.sink].is_learned:
            return ()
        path = f"{path}.sink"
        part = Part(
            kind="sink",
            path=path,
            layer="Sink",
            parameters=(self.maker.parameter(f"{path}.logits", "n_heads"),),
            names=names_of(self.maker.family, path),
        )
        return (part,)

    def _head_norms(self, path: str, queries: str, keys: str, is_cross: bool) -> tuple[Part, ...]:
        """Return the norms of each head's queries and keys; all heads share their numbers."""
        config = self.config
        if not config.qk_norm:
            return ()
        relative = None if is_cross else self.relative
        is_turned = relative is not None and relative.acts_on == "queries and keys"
        is_explicit = self._is_explicit(is_cross=is_cross)
        # the kernel keeps the projection for its values, unless it gets copies of them
        is_one = not (is_turned or is_cross or queries != keys)
        is_kept = not is_explicit and (is_one or not self._is_copied)
        n_kv = "n_kv_heads" if config.is_grouped else "n_heads"
        made = []
        for name, heads, length, width in (
            ("query", "n_heads", queries, self._d_q),
            ("key", n_kv, keys, self._d_kv),
        ):
            inner, x = f"{path}.{name}_norm", tensor(name, length, heads, "d_head")
            read = f"{length} {width}"
            # autocast keeps in full what the norm reads: two numbers of what is small otherwise
            products, copies = (read, read) if name == "query" else (f"2 {read}", "")
            if is_kept and not self._is_copied:  # what the norm makes is all that is new
                products, copies = "" if is_turned else read, f"2 {read}"
            elif is_kept and name == "key":  # of which a group gets copies
                products = ""
            made.append(
                Part(
                    kind="head-norm",
                    path=inner,
                    layer="RMSNorm",
                    inputs=(x,),
                    outputs=(x,),
                    parameters=(self.maker.parameter(f"{inner}.weight", "d_head"),),
                    names=names_of(self.maker.family, inner),
                    saved=Saved(
                        full=formula(f"{read} + {length} {heads}"),
                        products=formula(products),
                        copies=formula(copies),
                    ),
                )
            )
        return tuple(made)

    def _in_projection(
        self, path: str, inputs: tuple[Tensor, ...], macs: Formula, saved: Saved, is_cross: bool
    ) -> Part:
        config, maker = self.config, self.maker
        work: Work = "cross-attention" if is_cross else "projections"
        if not PROJECTIONS[config.projections].is_sliced:
            return replace(
                maker.linear(
                    path,
                    "d_qkv" if config.is_grouped else f"3 {self._d_q}",
                    "d_model",
                    inputs[0].shape[1],
                    bias=config.has_qkv_bias,
                    saved=saved,
                ),
                macs=macs,
                work=work,
                inputs=inputs,
            )
        heads = maker.parameter(f"{path}.heads", "3", "n_heads", "d_head", "d_head", is_hidden=True)
        whole = formula("3 d_model d_model")  # put together of the heads' for each batch
        bias = (maker.parameter(f"{path}.bias", "3 d_model"),) if config.has_qkv_bias else ()
        return Part(
            kind="projection",
            path=path,
            layer="SlicedProjection",
            inputs=inputs,
            outputs=(tensor("y", inputs[0].shape[1], "3 d_model"),),
            parameters=(heads, *bias),
            macs=macs,
            work=work,
            names=names_of(maker.family, path),
            saved=replace(saved, once=whole, cast=whole),
        )

    def _relative(self, kind: Position, layer: int, pairs: str) -> Part:
        """Return what turns queries and keys or adds to scores: one module for all blocks.

        pairs: the size of the scores, which is kept of what is added to them unless a sink changes
        it; empty where a mask does.
        """
        path = f"{self.name}.relative"
        parameters = tuple(
            self.maker.parameter(f"{path}.{n}", *shape, tied_to=f"{path}.{n}" if layer else "")
            for n, shape in (kind.inside.parameters if kind.inside else {}).items()
        )
        query = tensor("query", "n_heads", self.length, "d_head")
        is_kept = kind.acts_on == "scores" and not (
            layer or self._is_explicit(is_cross=False) or SINKS[self.config.sink].is_there
        )
        return Part(
            kind="relative",
            path=path,
            layer=_class_of(kind),
            variant=kind.name,
            inputs=(query,),
            outputs=(query,),
            parameters=parameters,
            names=names_of(self.maker.family, path),
            saved=Saved(once=formula(pairs if is_kept else "")),
        )

    def _mask(self, is_cross: bool, window: int) -> tuple[str, ...]:
        if is_cross:
            return ("padding",) if self.has_memory_padding else ()
        hides = ["padding"] if self.has_padding else []
        order = self._order
        if order and not (CAUSALITIES[order].sees_past and CAUSALITIES[order].sees_future):
            hides.append(order)
        return (*hides, "window") if window and hides else tuple(hides)

    def _mask_part(
        self, path: str, hides: tuple[str, ...], queries: str, keys: str, is_cross: bool
    ) -> Part:
        """Return the mask: a row for all queries where it hides padding alone, else one for each.

        A decoder's is made for each query, whatever it hides.
        """
        has_rows = not is_cross and (self.has_order or len(hides) > 1)
        rows = queries if has_rows else "1"
        name = "mask of the target" if self.has_order and not is_cross else "mask of the source"
        return Part(
            kind="mask",
            path=path,
            outputs=(tensor("mask", "1", rows, keys),),
            steps=("masks",),
            names=names_of(self.maker.family, name),
        )

    def _scores(
        self,
        path: str,
        queries: str,
        keys: str,
        hides: tuple[str, ...],
        relative: Position | None,
        *,
        is_cross: bool,
    ) -> Part:
        """Return queries times keys, and weights times values, with what they keep."""
        config = self.config
        pairs = f"n_heads {queries} {keys}"
        rows = queries if self.has_order or "window" in hides else "1"
        mask = "" if not hides else f"{keys}" if is_cross else f"{rows} {keys}"
        if not is_cross and self.has_order:  # there even where it hides nothing
            mask = f"{queries} {keys}"
        bias_trained = SINKS[config.sink].is_learned or (self._is_bias_trained and not is_cross)
        ends = ""
        if SINKS[config.sink].is_there:  # one more key of each query, and its value
            pairs, ends = f"{pairs} + n_heads {queries}", f"2 {self._d_q}"
        if config.dropout:  # weights, their noise, and both together
            full = 3 * formula(pairs) + formula(ends)
            saved = Saved(full=full, masks=formula(mask if bias_trained else ""))
        elif bias_trained:
            saved = Saved(full=formula(pairs) + formula(ends), masks=formula(mask))
        else:
            acts_on = "nothing" if relative is None else relative.acts_on
            products, once = mask, ""
            if acts_on == "queries and keys" and not self._is_copied:
                # as they came, and as they were made; of copies these alone
                products = f"{mask} + {queries} {self._d_q} + {keys} {self._d_q}"
            elif acts_on == "scores" and hides:  # what is added to them, with the mask in it
                products = f"{pairs} + {queries} {self._d_q}"
            elif acts_on == "scores" and SINKS[config.sink].is_there:
                once = pairs  # else it is one for all blocks, see ``_relative``
            saved = Saved(
                full=formula(f"n_heads {queries}")
                + formula(ends),  # of each row the log of its sum
                products=formula(products),
                watched=2 * formula(pairs),
                once=formula(once),
            )
        return Part(
            kind="scores",
            path=path,
            inputs=(
                tensor("query", "n_heads", queries, "d_head"),
                tensor("key", "n_heads", keys, "d_head"),
                tensor("value", "n_heads", keys, "d_head"),
            ),
            outputs=(
                tensor("weights", "n_heads", queries, keys),
                tensor("heads", "n_heads", queries, "d_head"),
            ),
            macs=formula(f"2 {queries} {keys} {self._d_q}"),
            work="cross-attention" if is_cross else "scores",
            saved=saved,
            names=names_of(self.maker.family, "scores"),
        )


N_BUCKETS = 32
"""The rows of T5's table of biases."""

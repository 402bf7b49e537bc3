"""What stands around the blocks of a pasted model: vocabularies, positions, norms, heads."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt

from tfm_core.inspect.notebook.given import MAX_LEN, MAX_WORDS, PIXELS, WORDS, Values, whole
from tfm_core.inspect.notebook.pasted import Layer, Pasted
from tfm_core.sentences import N_

_STEM = re.compile(r"patch|mapper|stem", re.I)


def missing(layer: Layer, times: int = 1) -> str:
    """Return the sentence on a layer that no part here stands for."""
    return N_(
        "“{path}” ({n:,} parameters) has no place here.",
        path=layer.path[-60:],
        n=layer.n_parameters * max(times, layer.times),
    )


@dataclass(slots=True)
class Ends:
    """Reads what stands around the blocks."""

    pasted: Pasted
    values: Values
    d_model: int
    said: list[str]
    is_tied: bool

    def of_words(self, family: str, around: Sequence[Layer]) -> Values:
        """Return the shape of a model of words."""
        shape: Values = {"scale_embedding": False}
        rest = [*around]
        tables = self._take(rest, lambda one: one.kind == "embedding" and one.out == self.d_model)
        positions = [one for one in tables if "pos" in one.path.lower() or "wpe" in one.path]
        segments = [one for one in tables if "type" in one.path or "segment" in one.path]
        words = [one for one in tables if one not in positions and one not in segments]
        positions += self._take(
            rest,
            lambda one: one.kind == "parameter" and "pos" in one.path.lower()
            and one.out % self.d_model == 0,
        )  # fmt: skip
        self._positions(positions)
        self._vocabularies(family, shape, words)
        early = self._take(
            rest,
            lambda one: (
                one.kind == "norm" and re.search(r"emb|segment", one.path.lower()) is not None
            ),
        )
        norms = self._take(rest, lambda one: one.kind == "norm" and one.out == self.d_model)
        if segments:
            shape["n_segments"] = segments[0].into
            early = early[1:]  # here a norm follows segments
        self.said.extend(missing(one) for one in early)
        self._final_norms(family, norms)
        self._head(family, shape, rest)
        self.said.extend(missing(one) for one in rest)
        return shape

    def of_pictures(self, around: Sequence[Layer]) -> Values:
        """Return the shape of a Vision Transformer."""
        rest, sizes = [*around], self.pasted.sizes
        shape: Values = {}
        convs = self._take(rest, lambda one: one.kind == "conv" and one.out == self.d_model)
        heads = [one for one in rest if one.kind == "linear"]
        head = heads[-1] if heads else None
        stem = next(
            (
                one
                for one in heads[:-1]
                if one.out == self.d_model and (one.into != self.d_model or _STEM.search(one.path))
            ),
            None,
        )
        if convs:
            self.values["patch_size"], shape["channels"] = convs[0].side, convs[0].into
        elif stem is not None:
            rest.remove(stem)
            channels = whole(sizes, "channels", 3 if stem.into % 3 == 0 else 1, 1, 256)
            shape["channels"] = channels
            self.values["patch_size"] = max(1, isqrt(stem.into // channels))
        if head is not None and head.into == self.d_model:
            rest.remove(head)
            shape["n_classes"] = head.out
        self._of_patches(rest, shape)
        self._final_norms("vit", self._take(rest, lambda one: one.kind == "norm"))
        self.said.extend(missing(one) for one in rest)
        return shape

    def _of_patches(self, rest: list[Layer], shape: Values) -> None:
        usual = 224 if shape.get("channels") == 3 else PIXELS
        tables = self._take(rest, lambda one: "pos" in one.path.lower() and one.kind != "linear")
        rows = sum(one.into * one.out for one in tables) // self.d_model
        if rows > 1:  # a row for each patch, and for CLS
            usual = isqrt(rows) * int(self.values.get("patch_size", 1))
        shape["image_size"] = whole(self.pasted.sizes, "image_size", usual, 1, 4_096)
        if "image_size" not in self.pasted.sizes and rows < 2:
            self.said.append(
                N_("No line says how large the pictures are; {n} pixels are taken. Add "
                   "image_size = ….", n=usual)
            )  # fmt: skip
        self.values |= {"pooling": "cls", "position": "learned"}
        own = [*tables, *self._take(rest, lambda one: one.kind == "parameter")]
        if not own:
            self.said.append(
                N_("A print shows no nn.Parameter: a CLS token and a table of positions are taken.")
            )

    def _take(self, rest: list[Layer], fits: Callable[[Layer], bool]) -> list[Layer]:
        found = [one for one in rest if fits(one)]
        for one in found:
            rest.remove(one)
        return found

    def _positions(self, positions: Sequence[Layer]) -> None:
        rows = [
            one.into if one.kind == "embedding" else one.out // self.d_model for one in positions
        ]
        layers = " ".join(self.pasted.plain.values()).lower()
        if "rotary" in layers:
            self.values["position"] = "rotary"
        elif self.values.get("position") == "t5-bias":
            return
        elif not rows and "position" not in self.pasted.sizes:
            self.said.append(
                N_("No table of positions is printed (an nn.Parameter never is); sine waves are "
                   "taken. Add position = learned, max_len = ….")
            )  # fmt: skip
        if rows:
            self.values |= {"position": "learned", "max_len": min(max(rows), MAX_LEN)}
            if max(rows) > MAX_LEN:
                self.said.append(
                    N_("Your table of positions has {n:,} rows; here at most {most:,}.",
                       n=max(rows), most=MAX_LEN)
                )  # fmt: skip

    def _vocabularies(self, family: str, shape: Values, words: Sequence[Layer]) -> None:
        sizes = [one.into for one in words]
        if not sizes:
            n = whole(self.pasted.sizes, "src_vocabulary", WORDS, 1, MAX_WORDS)
            self.said.append(
                N_(
                    "Yours reads vectors; here an embedding of {n:,} words ({size:,} parameters) "
                    "is added.",
                    n=n,
                    size=n * self.d_model * (2 if family == "encoder-decoder" else 1),
                )
            )
            shape["src_vocabulary"] = shape["tgt_vocabulary"] = n
            return
        shape["src_vocabulary"], shape["tgt_vocabulary"] = sizes[0], sizes[-1]
        if len({one.path for one in words}) == 1 or family != "encoder-decoder":
            shape["one_vocabulary"] = True

    def _final_norms(self, family: str, norms: Sequence[Layer]) -> None:
        wanted = 2 if family == "encoder-decoder" else 1
        usual = bool(self.values["norm_first"]) and self.values.get("norm") != "none"
        if len(norms) >= wanted:
            self.values["final_norm"] = "pre-norm" if usual else "always"
            for one in norms[wanted:]:
                self.said.append(missing(one))
        elif norms:
            self.values["final_norm"] = "pre-norm" if usual else "always"
            self.said.append(N_("One of your two stacks ends in a norm; here both do."))
        else:
            self.values["final_norm"] = "never" if usual else "pre-norm"
            if usual:
                self.said.append(
                    N_("Your last block has no norm behind it; here final_norm: never.")
                )

    def _head(self, family: str, shape: Values, rest: list[Layer]) -> None:
        linear = [one for one in rest if one.kind == "linear"]
        n_words = shape["tgt_vocabulary"]
        answers = next((one for one in linear if one.into == self.d_model and one.out == n_words
                        and n_words != self.d_model), None)  # fmt: skip
        if family != "encoder-only":
            shape["output_bias"] = answers.has_bias if answers else False
            self.values["tie_embeddings"] = self.is_tied
            if answers is not None:
                rest.remove(answers)
            elif self.pasted.is_table:  # it lists no tensor twice
                self.values["tie_embeddings"] = True
                self.said.append(
                    N_("No output layer stands in the table; it is taken to share the embedding.")
                )
            elif not self.is_tied:
                self.said.append(
                    N_("No output layer was found; here one answers with {n:,} words ({size:,} "
                       "parameters).", n=n_words, size=n_words * self.d_model)
                )  # fmt: skip
            return
        self._reader(shape, rest, linear, answers)

    def _reader(
        self, shape: Values, rest: list[Layer], linear: Sequence[Layer], answers: Layer | None
    ) -> None:
        """Take what an encoder alone answers with: words, labels, BERT's pooler or its states."""
        has_pooler = {"Pooler", "BertPooler"} & self.pasted.classes
        pooler = next((one for one in linear if "pooler" in one.path or has_pooler), None)
        if answers is not None and len(linear) == 1:
            rest.remove(answers)
            shape |= {"head": "tokens", "output_bias": answers.has_bias}
        elif pooler is not None and len(linear) == 1:
            rest.remove(pooler)
            shape |= {"head": "pooler", "one_vocabulary": True}
        elif linear and linear[0].into == self.d_model and len(linear) <= 2:
            for one in linear:
                rest.remove(one)
            n_labels = linear[-1].out
            hidden = linear[0].out if len(linear) == 2 else 0
            shape |= {"head": "mean", "n_labels": n_labels, "n_hidden": hidden,
                      "one_vocabulary": False, "tgt_vocabulary": n_labels + 4}  # fmt: skip
            self.values["pooling"] = "mean"
            self.said.append(
                N_("Your pooler reads the first token through a tanh; here ReLU reads the mean.")
                if pooler is not None
                else N_("No line says how a text becomes one vector; the mean is taken.")
            )
        else:
            shape |= {"head": "states", "one_vocabulary": True}
        if shape.get("one_vocabulary"):
            shape["tgt_vocabulary"] = shape["src_vocabulary"]

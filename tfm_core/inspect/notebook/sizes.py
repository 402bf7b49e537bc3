"""The sizes of a model under the names that notebooks and libraries give them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_OTHERS: Mapping[str, tuple[str, ...]] = {  # ours -> theirs, without underscores and capitals
    "d_model": (
        "dmodel",
        "embedsize",
        "embeddim",
        "hiddensize",
        "nembd",
        "dim",
        "embdim",
        "emsize",
        "embeddingdim",
        "modeldim",
    ),
    "n_heads": (
        "nheads",
        "numheads",
        "heads",
        "nhead",
        "numattentionheads",
        "nheads",
        "encoderattentionheads",
        "decoderattentionheads",
        "h",
    ),
    "d_ff": (
        "dff",
        "hiddendim",
        "intermediatesize",
        "ninner",
        "dimfeedforward",
        "ffdim",
        "ffndim",
        "encoderffndim",
        "decoderffndim",
        "mlpdim",
        "dmlp",
        "ffhidden",
        "hidden",
    ),
    "n_layers": (
        "nlayers",
        "numlayers",
        "layers",
        "numhiddenlayers",
        "nlayer",
        "depth",
        "numblocks",
        "nblocks",
        "n",
    ),
    "n_encoder_layers": ("nencoderlayers", "numencoderlayers", "encoderlayers"),
    "n_decoder_layers": ("ndecoderlayers", "numdecoderlayers", "decoderlayers"),
    "d_head": ("dhead", "headdim", "dk", "dv", "dimhead", "dkv"),
    "dropout": (
        "dropout",
        "droprate",
        "dropoutrate",
        "p",
        "hiddendropoutprob",
        "residpdrop",
        "dropoutp",
    ),
    "activation": ("activation", "hiddenact", "activationfunction", "act"),
    "max_len": (
        "maxlen",
        "maxlength",
        "maxseqlen",
        "maxseqlength",
        "maxpositionembeddings",
        "npositions",
        "nctx",
        "blocksize",
        "contextlength",
        "seqlen",
        "sequencelength",
    ),
    "src_vocabulary": (
        "srcvocabulary",
        "srcvocabsize",
        "vocabsize",
        "dvocab",
        "srcvocab",
        "inputvocabsize",
        "encvocabsize",
        "vocab",
    ),
    "tgt_vocabulary": (
        "tgtvocabulary",
        "tgtvocabsize",
        "trgvocabsize",
        "targetvocabsize",
        "tgtvocab",
        "decvocabsize",
        "trgvocab",
        "decodervocabsize",
    ),
    "patch_size": ("patchsize", "patch"),
    "image_size": ("imagesize", "imgsize", "image"),
    "channels": ("channels", "numchannels", "inchannels", "nchannels", "inchans"),
    "n_classes": ("nclasses", "numclasses", "numlabels", "nlabels", "outdim", "outd"),
    "norm_first": ("normfirst", "prenorm"),
    "norm_eps": ("normeps", "layernormeps", "layernormepsilon", "eps", "layerepsilon"),
    "bias": ("bias", "usebias"),
    "parameters": ("parameters", "params", "totalparams", "numparams"),
}
_THROWN = {  # says nothing of what a model is made of
    "device", "dtype", "batchsize", "lr", "learningrate", "epochs", "modeltype", "padtokenid",
    "initializerrange", "transformersversion", "usecache", "srcpadidx", "trgpadidx", "padidx",
    "batchfirst", "bostokenid", "eostokenid", "architectures", "torchdtype",
}  # fmt: skip
_BY_THEIRS = {name: ours for ours, names in _OTHERS.items() for name in names}
EXACT = (
    "family", "norm", "final_norm", "position", "projection_bias", "mistakes", "pooling", "window",
    "tie_embeddings", "query_key_gain", "n_kv_heads", "head_dim", "qkv_bias", "qk_norm",
    "n_experts", "top_k", "stem", "head", "n_hidden", "n_labels", "n_segments",
    "one_vocabulary", "output_bias", "scale_embedding", "has_source", "src_len", "tgt_len",
    "text_position", "rope_theta",
    "rope_scaling", "rope_factor", "rope_original_len", "full_every", "sink",
)  # fmt: skip
"""Further settings, which only our names stand for."""

CALLS: Mapping[str, tuple[str, ...]] = {  # a class of the notebooks -> its numbers, in order
    "Encoder": ("n_layers", "d_model", "n_heads", "d_ff"),
    "SimpleTransformer": ("src_vocabulary",),
    "SentimentAnalyzer": ("src_vocabulary",),
    "EncoderDecoderTransformer": ("src_vocabulary", "tgt_vocabulary"),
    "My_Transformer": ("src_vocabulary", "tgt_vocabulary"),
    "Transformer": ("src_vocabulary", "tgt_vocabulary"),
    "MyVIT": (),
    "nn.Transformer": (
        "d_model",
        "n_heads",
        "n_encoder_layers",
        "n_decoder_layers",
        "d_ff",
        "dropout",
        "activation",
    ),
}


def canonical(name: str) -> str | None:
    """Return our name of a size; "" for what no model is made of, None for an unknown name."""
    name = name.rpartition(".")[2]
    if name in EXACT:
        return name
    short = re.sub(r"[\W_]", "", name.lower())
    return "" if short in _THROWN else _BY_THEIRS.get(short)


def value_of(text: str) -> str:
    """Return a value as our settings read it: no quotes, no separators of thousands."""
    text = text.strip().strip("\"'")[:60]
    return text.replace("_", "") if re.fullmatch(r"\d[\d_]*", text) else text

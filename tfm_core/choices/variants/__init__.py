"""What a config can pick by name: one frozen record a variant, one registry a subject.

A record holds everything about a variant: words, rule, equation, code, style and its layer, named
as ``"module:name"`` and imported when a model is built. Nothing here imports torch.
"""

"""What a config can pick by name: one frozen record a variant, one registry a subject.

A record holds all that the house asks about a variant: words, rule, the layer's place, equation,
code, style. It is free of torch; the layer is named as ``"module:name"`` and found when a model is
built.
"""

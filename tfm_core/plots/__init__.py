"""Figures: tables or matrices in, a plotly figure out; nothing is computed about a model here.

``chart`` and ``cells`` draw all but seven, which are built by hand: ``planes`` and ``projected`` of
``films``, which play; ``treemap``; ``hands`` of positions; ``numbered``, a picture with frames;
``beam_tree``; and Optuna's own contour among those of ``sweeps``.
"""

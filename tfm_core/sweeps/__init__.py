"""Sweeps: an experiment tried with many settings, which Optuna suggests and ordinary runs answer.

Reading a plan needs no Optuna; it is imported where trials are suggested.
"""

"""Runs that come with the app: trained by this engine, kept as they were written.

``python -m tfm_core.recorded.build`` makes them anew.
"""

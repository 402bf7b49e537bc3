"""Lessons: a file of words and one of settings each, checks of what was done, and results.

A teacher writes one without Python (docs/lessons.md). What is locked is checked where a run starts,
what was reached from the runs themselves.
"""

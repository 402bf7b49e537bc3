"""Attention: which token looks at which, in every head, at every saved snapshot, and why."""

from __future__ import annotations

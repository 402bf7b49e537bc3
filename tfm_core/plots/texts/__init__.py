"""Texts: tokens, embeddings, and what a language model reads and writes."""

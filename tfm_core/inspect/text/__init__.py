"""Texts and words: tokens, embeddings, blanks, captions, surprise, generation."""

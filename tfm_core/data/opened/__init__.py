"""How a model from a folder cuts and spells texts: its tokenizer, and tasks in its tokens."""

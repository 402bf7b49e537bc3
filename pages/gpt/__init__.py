"""Writing: GPT."""

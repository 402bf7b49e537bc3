"""What heads look at, on examples, over validation data, and what explains an answer."""

"""Before the Transformer: recurrent networks with attention."""

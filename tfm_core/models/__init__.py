"""Models: three text topologies and the Vision Transformer; ``build`` makes them from configs."""

"""What only a host of many sets up: clusters, a store that servers share, published runs.

Other parts of the core reach clusters and the store through ``runs.backends.registry`` and
``runs.shared_store``, which load them by name where the environment asks for them.
"""

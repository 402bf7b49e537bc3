"""Side-by-side measurements: ``python -m benchmarks`` prints every table, with its target."""

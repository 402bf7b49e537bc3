"""Quick equals of the layers, which the builders take in their place.

Each class has the name, the parameters and the results of the plain one that it extends, and
overrides what it computes in less time. The plain classes are complete without them.
"""

"""Seeds: every draw in training comes from the experiment's seed and its own number."""


def mix(*numbers: int) -> int:
    """Return one well-mixed 63-bit seed for several numbers (SplitMix64, Steele et al. 2014)."""
    state = 0
    for number in numbers:
        state = (state + number + 0x9E3779B97F4A7C15) & (2**64 - 1)
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        state ^= state >> 31
    return state >> 1

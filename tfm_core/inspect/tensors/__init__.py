"""Operations on small tensors: results, strides, memory, errors."""

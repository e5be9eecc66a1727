"""tinygrad."""

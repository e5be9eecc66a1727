"""XLA through JAX."""

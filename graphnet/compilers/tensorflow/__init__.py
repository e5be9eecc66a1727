"""TensorFlow, with XLA or without."""

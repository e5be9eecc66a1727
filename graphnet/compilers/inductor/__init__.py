"""TorchInductor."""

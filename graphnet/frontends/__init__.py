"""Capture: graphs from PyTorch modules, ONNX files and sources by name, each compared with where it came from."""

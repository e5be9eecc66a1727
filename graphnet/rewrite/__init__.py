"""Passes over GraphIR."""

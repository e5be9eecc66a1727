"""Lowering tables: GraphIR operators to framework operators."""

"""GraphIR operators in PyTorch: `graph` walks the graph, `ops_*` are the rules by family."""

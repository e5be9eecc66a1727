"""GraphIR operators in TensorFlow: `graph` walks the graph, `ops_*` are the rules by family."""

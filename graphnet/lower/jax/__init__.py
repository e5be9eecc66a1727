"""GraphIR operators in JAX: `graph` walks the graph, `ops_*` are the rules by family."""

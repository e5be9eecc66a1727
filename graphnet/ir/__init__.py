"""GraphIR: graphs as data, and what is computed from them. Imports nothing of ours but errors."""

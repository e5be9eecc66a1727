"""Pure functions on records: statistics, scores, tables."""

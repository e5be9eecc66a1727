"""Evaluation: from (graph, compiler) pairs to stored records."""

"""The collection: finding graphs, recipes, building."""

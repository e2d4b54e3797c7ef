"""What is known: entries, indexes, paths and selectors."""

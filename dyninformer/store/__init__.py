"""What is known of one resource: entries, indexes, and what changes them."""

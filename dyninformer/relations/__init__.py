"""What objects have to do with each other: owners, what they own, and events about them.

Not for import: all that is public is in `dyninformer`.
"""

"""What was: a cache at one moment, what differs between two, and recordings.

Not for import: all that is public is in `dyninformer`.
"""

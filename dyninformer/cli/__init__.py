"""The ``dyninformer`` command: a shell over the library, in kubectl's words."""

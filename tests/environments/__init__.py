"""Where the package and its tests are tried besides a developer's machine."""

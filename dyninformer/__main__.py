"""``python -m dyninformer`` is the command, also where its folder is not in PATH."""

from __future__ import annotations

from dyninformer.cli.start import main

if __name__ == "__main__":
    main()

"""Where the installed command begins: an interrupt says nothing, from the first import on.

It is there without the extra ``cli``, too, and then says what is to be installed.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Also installed as the kubectl plugin ``kubectl informer``."""
    try:
        # Its import is most of what a short command takes.
        try:
            from dyninformer.cli.main import main as run  # noqa: PLC0415 - see above
        except ModuleNotFoundError as error:
            sys.exit(f"error: the command needs {error.name}: pip install 'dyninformer[cli]'")
        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

"""Print the lowest version that setup.cfg allows of each dependency, as pip constraints."""

import re
import sys
from collections.abc import Iterator
from configparser import ConfigParser

TOOLS = {
    "dev",
    "docs",
    "pyright",
    "browser",
}  # what only runs the checks is taken as new as it comes


def lowest(path: str) -> Iterator[str]:
    """``name==version`` for each requirement with a lower bound."""
    config = ConfigParser()
    config.read(path)
    blocks = [config["options"]["install_requires"]]
    extras = config["options.extras_require"]
    blocks += [text for extra, text in extras.items() if extra not in TOOLS]
    for line in "\n".join(blocks).splitlines():
        if found := re.match(r"([\w.-]+)>=([\w.]+)", line.strip()):
            yield f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1])))

"""Why no answer came is said in words that lead to what can be done."""

from __future__ import annotations

import errno
import os
import re

import pytest

from dyninformer.watching.failures import unanswered


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EMFILE, r"this process has all the files open that it may have.*ulimit -n"),
        (errno.ENFILE, r"this machine has all the files open"),
    ],
)
def test_a_lack_of_files_is_not_blamed_on_the_network(code: int, said: str) -> None:
    """A thousand connections are more than many shells allow."""
    error = unanswered(OSError(code, os.strerror(code)), "h", None, "connecting", 30.0)
    assert re.search(said, str(error))
    assert "VPN" not in str(error)

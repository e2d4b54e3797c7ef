"""The string formats of OpenAPI that the server checks; unknown ones hold everything."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from dyninformer.testing.cluster.timestamps import is_date_time

Check = Callable[[str], object]


def has_format(name: str, value: str) -> bool:
    """Whether ``value`` is of the format; rather too lenient than too strict.

    >>> has_format("ipv4", "10.0.0.1"), has_format("ipv4", "10.0.0"), has_format("color", "x")
    (True, False, True)
    """
    check = _FORMATS.get(name)
    if check is None:
        return True
    try:
        return check(value) is not False
    except (ValueError, binascii.Error):
        return False


def _fully(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda value: compiled.fullmatch(value) is not None


_UNIT = r"\s*(?:ns|us|µs|ms|s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)"
_FORMATS: dict[str, Check] = {
    "date-time": is_date_time,
    "datetime": is_date_time,
    "date": _fully(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"),
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "cidr": lambda value: "/" in value and ipaddress.ip_network(value, strict=False),
    "uri": lambda value: bool(urlsplit(value).scheme) or value.startswith("/"),
    "email": _fully(r"[^@\s]+@[^@\s]+"),
    "uuid": _fully(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "byte": lambda value: base64.b64decode(value, validate=True),
    "duration": _fully(rf"[-+]?(?:\d+(?:\.\d+)?{_UNIT})+|0"),
}

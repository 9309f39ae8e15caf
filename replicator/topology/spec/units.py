"""Durations and sizes as people write them: `200ms`, `5s`, `10m`, `2h`; `64KiB`, `50MB`."""

import re

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_BYTES = {
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}

DURATION_PATTERN = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$"
SIZE_PATTERN = r"^[0-9]+(\.[0-9]+)?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"


def parse_duration(text: str) -> float:
    """Seconds of a duration.

    Raises:
        ValueError: when the text is not a number directly followed by ms, s, m or h.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a duration")
    return float(match[1]) * _SECONDS[match[2]]


def parse_size(text: str) -> int:
    """Bytes of a size.

    Raises:
        ValueError: when the text is not a number directly followed by a unit such as KiB or MB.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a size")
    return round(float(match[1]) * _BYTES[match[2]])


def format_duration(seconds: float) -> str:
    """A duration as the file would say it, in the largest unit that keeps it whole."""
    for unit in ("h", "m", "s"):
        if seconds >= _SECONDS[unit] and (seconds / _SECONDS[unit]).is_integer():
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{seconds * 1000:g}ms"

"""How many bytes of a log were understood."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KindBytes:
    """Bytes of the lines of each kind, line feeds included; together the unpacked size."""

    matched: int
    ignored: int
    unknown: int
    damaged: int

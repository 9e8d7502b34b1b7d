"""Every form in which Prometheus metrics are handed over: one module per format."""

from parsers.interface import Format
from parsers.prometheus.query_json import QueryJson
from parsers.prometheus.text import Text

__all__ = ["FORMATS"]

FORMATS: tuple[Format, ...] = (QueryJson(), Text())
"""In the order they are asked: the more particular first."""

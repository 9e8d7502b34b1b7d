"""Every form in which Prometheus metrics are handed over: one module per format."""

from parsers.interface import Format
from parsers.prometheus.csv_tables import CsvTable
from parsers.prometheus.grafana_json import GrafanaJson
from parsers.prometheus.query_json import QueryJson
from parsers.prometheus.text import Text
from parsers.prometheus.tsdb_dump import TsdbDump
from parsers.prometheus.victoria_json import VictoriaJson

__all__ = ["FORMATS"]

FORMATS: tuple[Format, ...] = (
    VictoriaJson(),
    QueryJson(),
    GrafanaJson(),
    TsdbDump(),
    Text(),
    CsvTable(),
)
"""In the order they are asked: the more particular first."""

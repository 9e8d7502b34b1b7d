"""Where the JSON document differs from the records: the one table both ways and the schema read.

* an instant is ISO 8601 text; an interval of instants is ``{start, end}``; pairs get names;
* a `Message` becomes its English sentence, and beside it ``<name>_message: {key, values}``, from
  which any report in any language can be made again;
* `Input.place` is left out: it points into evidence that does not travel; `source` says the same.
"""

import typing
from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import cache

from forensics import analysis as records
from forensics.catalog.messages import Message
from forensics.ceiling.records import Input, Sweep
from forensics.verdict import Verdict

Json = dict[str, object]
Field = tuple[type[object], str]

INSTANTS: set[Field] = {
    (records.Where, "time"),
    (records.Finding, "end"),
    (records.EpochView, "start"),
    (records.EpochView, "end"),
    (records.MarkView, "time"),
    (Verdict, "end"),
}
INTERVALS: set[Field] = {
    (records.Finding, "onset"),
    (records.Decomposition, "onset"),
    (Verdict, "onset"),
}
PAIRS: dict[Field, tuple[str, ...]] = {
    (Sweep, "hit_break"): ("low", "high"),
    (Sweep, "throughput_peak"): ("low", "high"),
    (Verdict, "candidates"): ("cause", "confidence"),
    (records.FileView, "unknown_shapes"): ("shape", "count"),
    (records.FileView, "damage"): ("line", "reason"),
}
RENAMED: dict[Field, str] = {
    (records.Impact, "ttft_s"): "ttft",
    (records.Impact, "e2e_s"): "e2e",
    (records.Impact, "latency_parts_s"): "latency_parts",
}
LEFT_OUT: set[Field] = {(Input, "place")}
# A place names a line of a log or a series at a time: what does not apply is not written.
SPARSE: set[type[object]] = {records.Where}


def hints(cls: type[object]) -> Mapping[str, object]:
    """Give the resolved types of a record's fields, in order, without those left out."""
    return _hints(typing.cast(Hashable, cls))


@cache
def _hints(cls: Hashable) -> Mapping[str, object]:
    record = typing.cast(type[records.Where], cls)
    known = typing.get_type_hints(record)
    names = (item.name for item in fields(record))
    return {name: known[name] for name in names if (record, name) not in LEFT_OUT}


def says(hint: object) -> bool:
    """Tell whether a field holds a sentence or sentences."""
    return hint is Message or Message in typing.get_args(hint)

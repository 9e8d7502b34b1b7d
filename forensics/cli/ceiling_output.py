"""Ceilings, sweep and what-if tables as text or JSON, for `forensics ceiling`."""

import os
import shutil
import sys
from collections.abc import Sequence

import orjson

import forensics
from forensics.capacity.plan import Wanted, ceiling_for
from forensics.capacity.what_if import batches, changes
from forensics.catalog.messages import Message, render, say_duration, say_number
from forensics.ceiling.records import Ceiling, Sweep
from forensics.cli.render import Look, colour_wanted
from forensics.reports.document import listed
from forensics.reports.json import render_ceilings
from forensics.reports.layout import Paint
from forensics.reports.text_ceiling import ceiling_lines, sweep_lines
from forensics.reports.text_page import Page, table

WIDEST = 120


def as_text(
    ceilings: Sequence[Ceiling], sweep: Sweep | None, wanted: Wanted | None, lang: str
) -> str:
    """Write the answer for a terminal; tables only where something was asked for by `wanted`."""
    page = Page(
        width=min(WIDEST, shutil.get_terminal_size((100, 24)).columns),
        lang=lang,
        paint=Paint(colour_wanted(sys.stdout, Look(), os.environ)),
        ascii_only=False,
        verbose=False,
    )
    blocks = [ceiling_lines(item, page) for item in ceilings]
    if wanted is not None:
        blocks += _tables(wanted, lang)
    if sweep is not None:
        blocks.append(sweep_lines(sweep, page))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def as_json(ceilings: Sequence[Ceiling], sweep: Sweep | None, wanted: Wanted | None) -> str:
    """Write `{schema_version, tool, ceilings}`; `sweep` and `what_if` where there are such."""
    text = render_ceilings(ceilings, forensics.__version__)
    if sweep is None and wanted is None:
        return text
    tree = orjson.loads(text)
    if sweep is not None:
        # As in the document of an analysis: the rows, and what was found in them beside.
        tree["sweep"] = listed(sweep.rows)
        summary = listed([sweep])[0]
        tree["sweep_summary"] = {name: summary[name] for name in summary if name != "rows"}
    if wanted is not None:
        plan = ceiling_for(wanted)
        tree["what_if"] = {
            "batches": listed(batches(plan)),
            "changes": listed(changes(wanted, plan)),
        }
    return orjson.dumps(tree, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _tables(wanted: Wanted, lang: str) -> list[list[str]]:
    plan = ceiling_for(wanted)
    said = [
        render(Message(f"ceiling.table.{name}"), lang)
        for name in ("batch", "clients", "hits", "usage", "residence", "risk", "itl", "rate")
    ]
    rows = [
        [
            str(row.batch),
            say_number(row.clients),
            f"{row.hit_rate * 100:.0f} %",
            f"{row.usage * 100:.0f} %",
            say_duration(row.residence_s) if row.residence_s < 1e6 else "∞",
            f"{row.preemption_risk * 100:.0f} %",
            say_duration(row.itl_s),
            say_number(row.throughput_tok_s),
        ]
        for row in batches(plan)
    ]
    named = [
        render(Message(f"ceiling.table.{name}"), lang)
        for name in ("change", "pool", "limit", "bound", "clients")
    ]
    compared = [
        [
            row.change,
            *(
                "–" if value is None else say_number(value)
                for value in (row.pool_tokens, row.limit)
            ),
            row.binding or "–",
            "–" if row.sessions is None else say_number(row.sessions),
        ]
        for row in changes(wanted, plan)
    ]
    blocks = [table([said, *rows])] if rows else []
    return [*blocks, table([named, *compared])]

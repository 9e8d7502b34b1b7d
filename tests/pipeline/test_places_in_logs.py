"""A figure read off stats lines points at the very line that says it."""

import re

from forensics import analyze


def test_exhibits_from_stats_lines_name_file_and_line(corpus):
    log = corpus / "f-queueing-v032" / "server.log"
    lines = log.read_text("utf-8").splitlines()
    analysis = analyze([str(log)])
    seats = next(item for item in analysis.findings if item.cause == "seat-limit")
    running = next(item for item in seats.exhibits if item.signal == "running")
    assert running.source is not None and running.source.line is not None
    said = lines[running.source.line - 1]
    assert running.source.text == said
    assert re.search(r"Running: (\d+) reqs", said)[1] == "8"
    assert running.source.series is None

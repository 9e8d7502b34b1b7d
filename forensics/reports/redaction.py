"""Analysis → the same without what must not leave the house: names, addresses, log text, prompts.

`--anonymize` puts a stand-in for each name, the same one everywhere (``host-1``, ``model-1``), so a
report still tells one engine from another. `--confidential` goes further: no log text, no labels,
no file names, no command line. Prompts are taken out of log text unless they are asked for.
Figures, times, settings and verdicts stay.
"""

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from forensics.analysis import Analysis, Evidenced, FileView, Where
from forensics.config import Options
from forensics.reports.records import texts, with_text

# Labels that name a machine, a service or a model; exposed by Prometheus, not by vLLM alone.
_HOST_LABELS = "instance|pod|node|host|hostname|nodename|exported_instance"
# Values of these are ordinary words ("vllm"), so they are only replaced inside the label.
_GROUP_LABELS = "container|namespace|job|service|cluster|exported_job"
_LABEL = re.compile(rf'\b(?P<name>{_HOST_LABELS}|model_name|model)="(?P<value>[^"]+)"')
_GROUP = re.compile(rf'\b(?:{_GROUP_LABELS})(="[^"]+")')
_IPV4 = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b")
_IPV6 = re.compile(r"\[[0-9a-fA-F:]{3,}\](?::\d+)?|\b(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}\b")
_URL_HOST = re.compile(r"(?<=://)[^/\s\"'?#]+")
# cmpl-…, chatcmpl-…, the bare hexadecimal ids of 0.4 and later, and what clients choose themselves.
_REQUEST = re.compile(
    r"\b(?:(?:chat)?cmpl|req|embd|resp|rerank|score|pool)-[\w-]{8,}|\b[0-9a-f]{32}\b"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|(?<=[Rr]equest )(?=[\w-]*\d)[\w-]{8,}(?=\.?$|[.:]? )"
)
_HOME = re.compile(r"(?<=/home/)[^/\s\"']+|(?<=/Users/)[^/\s\"']+")
_PROMPT = re.compile(
    r"(\b(?:prompt|prompt_token_ids|prompt_embeds|messages|content|input_value|inputs?|output"
    r"|output_token_ids|query|documents)[\"'\\]*\s*[:=]\s*).*",
    re.DOTALL,
)
# Errors quote what a user sent; names of settings, layers and devices have no blanks but marks.
_ERROR = re.compile(r"\w(?:Error|Exception)\b[:(]|\bfailed (?:due to|\()")
_QUOTED = re.compile(r"""(?P<quote>\\?["'])(?P<inside>(?:(?!(?P=quote)).)*)(?P=quote)""", re.DOTALL)
_NAME = re.compile(r"(?=.*[._/:=])[\w./:=@+-]{1,80}")
# Shorter names ("0") are numbers of ranks, and hiding them would hide which engine is meant.
_SHORTEST = 3


def redacted(analysis: Analysis, options: Options) -> Analysis:
    """Take out what the options ask to be taken out."""
    if not options.include_prompts:
        analysis = with_text(_each_place(analysis, _without_prompt), without_quotes)
    if not (options.anonymize or options.confidential):
        return analysis
    names = stand_ins(analysis)
    hidden = with_text(analysis, lambda text: replaced(text, names))
    return _confidential(hidden) if options.confidential else hidden


def without_quotes(text: str) -> str:
    """Take out what an error quotes, unless it is the name of something.

    >>> without_quotes("ValueError: no model layer 'model.layers.0' for 'my secret'")
    "ValueError: no model layer 'model.layers.0' for '…'"
    """
    error = _ERROR.search(text)
    if error is None:
        return text
    return text[: error.end()] + _QUOTED.sub(_unquoted, text[error.end() :])


def _unquoted(match: re.Match[str]) -> str:
    if _NAME.fullmatch(match["inside"]) is not None:
        return match[0]
    return f"{match['quote']}…{match['quote']}"


def stand_ins(
    analysis: Analysis, also: Iterable[tuple[str, str]] = (), further: Iterable[str] = ()
) -> dict[str, str]:
    """Give each name its stand-in, numbered by first appearance; longer names come first.

    Args:
        analysis: the names that reports show, which therefore have the same stand-in everywhere.
        also: further names, as (kind, name).
        further: other text in which names are looked for.
    """
    found: dict[str, str] = {}
    counts: dict[str, int] = {}

    def add(kind: str, name: str | None) -> None:
        if name is None or len(name) < _SHORTEST or name in found:
            return
        counts[kind] = counts.get(kind, 0) + 1
        found[name] = f"{kind}-{counts[kind]}"

    for engine in analysis.engines:
        add("host", engine.instance)
        for epoch in engine.epochs:
            add("model", epoch.model)
    for kind, name in also:
        add(kind, name)
    for text in (*texts(analysis), *further):
        for label in _LABEL.finditer(text):
            kind = "model" if label["name"].startswith("model") else "host"
            add(kind, label["value"])
        for group in _GROUP.findall(text):
            counts["group"] = counts.get("group", 0) + (group not in found)
            found.setdefault(group, f'="group-{counts["group"]}"')
        for kind, pattern in (("host", _URL_HOST), ("user", _HOME), ("request", _REQUEST)):
            for name in pattern.findall(text):
                add(kind, name)
        for pattern in (_IPV4, _IPV6):
            for name in pattern.findall(text):
                add("host", name)
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def replaced(text: str, names: dict[str, str]) -> str:
    """Put stand-ins in the place of names."""
    for name, stand_in in names.items():
        if name.startswith("="):
            text = text.replace(name, stand_in)
        elif name in text:
            # Not inside a longer word: the model "opt" must not change "options".
            text = re.sub(rf"(?<![\w]){re.escape(name)}(?![\w])", stand_in, text)
    return text


def _confidential(analysis: Analysis) -> Analysis:
    names: dict[str, str] = {}
    for number, view in enumerate(analysis.files, start=1):
        names[view.path] = f"file-{number}{posixpath.splitext(view.path)[1][:8]}"
    shown = with_text(analysis, lambda text: _files_renamed(text, names))
    shown = _each_place(shown, _bare)
    return replace(
        shown,
        engines=tuple(
            replace(
                engine,
                instance=None,
                epochs=tuple(replace(epoch, model=None) for epoch in engine.epochs),
            )
            for engine in shown.engines
        ),
        ceilings=tuple(replace(ceiling, model=None) for ceiling in shown.ceilings),
        files=tuple(_without_shapes(view) for view in shown.files),
        reproduce=None,
    )


def _files_renamed(text: str, names: dict[str, str]) -> str:
    for path, name in sorted(names.items(), key=lambda item: -len(item[0])):
        text = text.replace(path, name)
    return text


def _without_shapes(view: FileView) -> FileView:
    return replace(view, unknown_shapes=(), note=None)


def _bare(where: Where) -> Where:
    series = None if where.series is None else where.series.partition("{")[0]
    return replace(where, text=None, series=series)


def _without_prompt(where: Where) -> Where:
    if where.text is None:
        return where
    return replace(where, text=_PROMPT.sub(r"\1…", where.text))


def _each_place(analysis: Analysis, change: Callable[[Where], Where]) -> Analysis:
    """Change every place that findings and marks show."""

    def exhibits(rows: tuple[Evidenced, ...]) -> tuple[Evidenced, ...]:
        return tuple(
            replace(row, source=None if row.source is None else change(row.source)) for row in rows
        )

    return replace(
        analysis,
        findings=tuple(
            replace(item, exhibits=exhibits(item.exhibits), against=exhibits(item.against))
            for item in analysis.findings
        ),
        tracks=tuple(
            replace(
                tracks,
                marks=tuple(
                    replace(mark, source=None if mark.source is None else change(mark.source))
                    for mark in tracks.marks
                ),
            )
            for tracks in analysis.tracks
        ),
    )

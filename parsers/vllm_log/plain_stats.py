"""Stats lines in the shapes that nearly all of them have, many at once.

Gives exactly what `stats` gives: figures are taken over as printed, which is how a number with one
decimal is written in JSON too. Anything else about a line sends it the long way.

The first line of a shape is read by an expression. The others must have the same text between their
figures, which is compared place by place while the figures' widths move the places.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from parsers.vllm_log.literals import MAX_LITERALS, Literal
from parsers.vllm_log.windows import Bools, Bytes, Ints, columns_of, first_true, window

_PLAIN = re.compile(
    rb"\[?\w{1,26}\.py:\d{1,5}\] (?:Engine (?P<engine>\d{3}): )?"
    rb"Avg prompt throughput: (?P<prompt_tps>NUMBER) tokens/s, "
    rb"Avg generation throughput: (?P<generation_tps>NUMBER) tokens/s, "
    rb"Running: (?P<running>COUNT) reqs, "
    rb"(?:Waiting: (?P<waiting>COUNT) reqs, "
    rb"(?P<device>\w{1,8}) KV cache usage: (?P<kv_usage_pct>NUMBER)%"
    rb"(?:, Prefix cache hit rate: (?P<prefix_hit_rate_pct>NUMBER)%)?"
    rb"|Swapped: (?P<swapped>COUNT) reqs, Pending: (?P<pending>COUNT) reqs, "
    rb"GPU KV cache usage: (?P<gpu_kv_usage_pct>NUMBER)%, "
    rb"CPU KV cache usage: (?P<cpu_kv_usage_pct>NUMBER)%\.?)".replace(
        b"NUMBER", rb"COUNT\.\d"
    ).replace(b"COUNT", rb"(?:0|[1-9]\d{0,8})")
)
_FIELDS = (  # in the order of `stats`
    "prompt_tps",
    "generation_tps",
    "running",
    "waiting",
    "swapped",
    "pending",
    "prefix_hit_rate_pct",
    "device",
    "kv_usage_pct",
    "gpu_kv_usage_pct",
    "cpu_kv_usage_pct",
)
_NUMBER_WIDTH = 16


class _Shape(NamedTuple):
    """The text of a stats line without its figures.

    Attributes:
        engine: the rank that it names.
        texts: before, between and behind the figures.
        decimals: for each figure whether it has a decimal.
        pieces: the same of the fields as JSON.
        order: for each figure of the fields its place in the line.
    """

    engine: str | None
    texts: list[bytes]
    decimals: list[bool]
    pieces: list[bytes]
    order: list[int]


class PlainStats(NamedTuple):
    """Stats lines of one shape: which ones, the engine they name, and their fields."""

    lines: Ints
    engine: str | None
    text: bytes
    lengths: Ints


def read_plain(buffer: bytearray, begins: Ints, tails: Ints) -> Iterator[PlainStats]:
    """Read stats lines; those that are not exactly of a usual shape are left out.

    Args:
        buffer: has 128 bytes behind the last line.
        begins: where the location in the code begins in each line.
        tails: where the lines end.
    """
    left = np.arange(len(begins))
    for _ in range(MAX_LITERALS):
        if not len(left):
            return
        shape = _shape(buffer, int(begins[left[0]]), int(tails[left[0]]))
        if shape is None:
            left = left[1:]
            continue
        good, figures, widths = _figures(buffer, begins[left], tails[left], shape)
        if not good.all():
            figures = [figure[good] for figure in figures]
            widths = [width[good] for width in widths]
        text, lengths = _fields(shape, figures, widths)
        yield PlainStats(left[good], shape.engine, text, lengths)
        left = left[~good]


def _shape(buffer: bytearray, begin: int, end: int) -> _Shape | None:
    match = _PLAIN.fullmatch(buffer, begin, end)
    if match is None:
        return None
    names = [name for name in _FIELDS if match[name] is not None]
    figures = sorted((name for name in names if name != "device"), key=match.start)
    borders = [begin, *(at for name in figures for at in match.span(name)), end]
    beginnings = [f'"{name}":' for name in names]
    if match["device"] is not None:
        beginnings[names.index("device")] += f'"{match["device"].decode()}"'
    between = "{" + ",".join(
        beginning if name == "device" else beginning + "\n"
        for name, beginning in zip(names, beginnings, strict=True)
    )
    return _Shape(
        engine=None if match["engine"] is None else str(int(match["engine"])),
        texts=[
            bytes(buffer[at:behind]) for at, behind in zip(borders[::2], borders[1::2], strict=True)
        ],
        decimals=[b"." in match[name] for name in figures],
        pieces=(between + "}").encode().split(b"\n"),
        order=[figures.index(name) for name in names if name != "device"],
    )


def _figures(
    buffer: bytearray, places: Ints, tails: Ints, shape: _Shape
) -> tuple[Bools, list[Bytes], list[Ints]]:
    """Tell which lines have the shape; return the figures of all, from left to right."""
    good = np.ones(len(places), np.bool_)
    rows = np.arange(len(places))
    figures: list[Bytes] = []
    widths: list[Ints] = []
    for number, text in enumerate(shape.texts):
        columns = columns_of(window(buffer, places, -(-len(text) // 8) * 8))
        good &= Literal(text, 0, 0).on(columns) if text else True
        places = np.minimum(places + len(text), tails)
        if number == len(shape.decimals):
            break
        figure = window(buffer, places, _NUMBER_WIDTH)
        digits = figure - np.uint8(48) <= 9  # what is below "0" wraps round to above 9
        whole = first_true(~digits)
        good &= (whole >= 1) & (whole <= 9) & ((figure[:, 0] != 48) | (whole == 1))
        width = np.clip(whole, 1, 9)
        if shape.decimals[number]:
            good &= (figure[rows, width] == 46) & digits[rows, width + 1]
            width = width + 2
        figures.append(figure)
        widths.append(width)
        places = np.minimum(places + width, tails)
    good &= places == tails
    return good, figures, widths


def _fields(shape: _Shape, figures: list[Bytes], widths: list[Ints]) -> tuple[bytes, Ints]:
    """Write the fields of lines of a shape, one behind the other."""
    row = bytes(_NUMBER_WIDTH).join(shape.pieces)
    grid = np.empty((len(widths[0]), len(row)), np.uint8)
    grid[:] = np.frombuffer(row, np.uint8)
    used = np.ones(grid.shape, np.bool_)
    columns = np.arange(_NUMBER_WIDTH)
    lengths = np.full(len(grid), len(row) - len(figures) * _NUMBER_WIDTH)
    at = 0
    for piece, number in zip(shape.pieces[:-1], shape.order, strict=True):
        at += len(piece)
        behind = at + _NUMBER_WIDTH
        grid[:, at:behind] = figures[number]
        used[:, at:behind] = columns < widths[number][:, None]
        lengths += widths[number]
        at = behind
    return grid[used].tobytes(), lengths

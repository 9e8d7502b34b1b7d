"""Columns of text as Arrow lays them out: views of sixteen bytes into one buffer of characters.

A view is the length, then either the text itself, up to twelve bytes, or its first four bytes, the
number of a buffer and the place in it. See https://arrow.apache.org/docs/format/Columnar.html.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from parsers.vllm_log.windows import Ints

Views = npt.NDArray[np.uint32]

INLINE_BYTES = 12


def views(data: bytes, starts: Ints, lengths: Ints) -> Views:
    """Return views, four numbers each, of texts in a buffer that has 16 bytes behind the last."""
    if not len(starts):
        return np.empty((0, 4), np.uint32)
    windows = np.ndarray((len(data) - 15,), "V16", data, 0, (1,))[starts]
    found: Views = np.empty((len(starts), 4), np.uint32)
    found[:, 0] = lengths
    found[:, 1:] = windows.view(np.uint32).reshape(-1, 4)[:, :3]
    short = lengths <= INLINE_BYTES
    long = np.flatnonzero(~short)
    found[long, 2] = 0
    found[long, 3] = starts[long]
    inlined = np.flatnonzero(short)
    if len(inlined):
        text = found[inlined].view(np.uint8)
        text[:, 4:][np.arange(INLINE_BYTES) >= lengths[inlined, None]] = 0
        found[inlined] = text.view(np.uint32)
    return found


def laid_out(texts: Sequence[bytes], base: int = 0) -> tuple[bytes, Ints, Ints]:
    """Return texts one behind the other, where each begins, counted from `base`, and its length."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return b"".join(texts), np.cumsum(lengths) - lengths + base, lengths


PADDING = bytes(16)

"""Bytes at many places of a buffer at once."""

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


def window(buffer: bytearray, places: Ints, width: int) -> Bytes:
    """Return `width` bytes at each place, one row each."""
    # Whole items of that width are gathered faster than rows of bytes.
    items = np.ndarray((len(buffer) - width,), f"V{width}", buffer, 0, (1,))
    return items[places].view(np.uint8).reshape(-1, width)


def columns_of(windows: Bytes) -> Words:
    """Return the words of windows, the n-th of all windows in row n."""
    return np.ascontiguousarray(windows.view("<u8").T)


def first_true(found: Bools) -> Ints:
    """Return the first true place of each row of 16, 32 or 64; less than 0 where there is none."""
    bits = np.packbits(found, bitorder="little").view(f"<u{found.shape[1] // 8}").astype(np.uint64)
    lowest = bits & -bits
    # A power of two as a float is its exponent, and zero has the smallest one.
    first: Ints = (lowest.astype(np.float64).view(np.int64) >> 52) - 1023
    return first

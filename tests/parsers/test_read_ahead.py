"""A stream that was looked into gives the bytes it had, in whatever pieces it is read."""

import io

import pytest

from parsers.read_ahead import Peeked


class Trickle(io.BytesIO):
    """Hands out three bytes at a time, as pipes do."""

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:3])


@pytest.mark.parametrize("kind", [io.BytesIO, Trickle])
@pytest.mark.parametrize("count", [0, 1, 7, 10, 11, 50])
@pytest.mark.parametrize("piece", [1, 4, 64])
def test_what_was_peeked_comes_first(kind, count, piece):
    content = b"0123456789"
    stream = Peeked(kind(content), count)
    assert stream.held == min(count, len(content))
    found = b""
    buffer = bytearray(piece)
    while got := stream.readinto(memoryview(buffer)):
        found += buffer[:got]
    assert found == content
    assert not stream.readinto(memoryview(buffer))

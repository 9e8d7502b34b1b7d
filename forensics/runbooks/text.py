"""Text that remembers where in its file each character stands, and the file's lines."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mapped:
    """A piece of text taken out of a file: unindented, unescaped or folded on the way.

    Attributes:
        text: the piece.
        offsets: for each of its characters the offset in the file, and one more for the end;
            a `range` where nothing was taken away.
    """

    text: str
    offsets: Sequence[int]

    @classmethod
    def plain(cls, text: str, start: int) -> "Mapped":
        """Return a piece that stands in the file as it is, from offset `start`."""
        return cls(text, range(start, start + len(text) + 1))

    def cut(self, start: int, end: int) -> "Mapped":
        """Return the characters from `start` to before `end`."""
        return Mapped(self.text[start:end], self.offsets[start : end + 1])

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where the characters from `start` to before `end` stand in the file."""
        if end <= start:
            return self.offsets[start], self.offsets[start]
        return self.offsets[start], self.offsets[end - 1] + 1

    @property
    def span(self) -> tuple[int, int]:
        """Where all of it stands in the file."""
        return self.place(0, len(self.text))

    def verbatim(self, start: int, end: int) -> bool:
        """Tell whether these characters stand in the file unchanged and in one stretch."""
        first = self.offsets[start]
        return all(self.offsets[at] == first + at - start for at in range(start, end))

    def lines(self) -> Iterator["Mapped"]:
        """Yield its lines without their breaks."""
        start = 0
        for line in self.text.split("\n"):
            yield self.cut(start, start + len(line))
            start += len(line) + 1


def joined(pieces: Sequence[Mapped], glue: str = "\n") -> Mapped:
    """Put pieces one after another; the glue stands where the piece before it ends."""
    text: list[str] = []
    offsets: list[int] = []
    for index, piece in enumerate(pieces):
        if index:
            text.append(glue)
            offsets.extend([pieces[index - 1].offsets[-1]] * len(glue))
        text.append(piece.text)
        offsets.extend(piece.offsets[: len(piece.text)])
    offsets.append(pieces[-1].offsets[-1] if pieces else 0)
    return Mapped("".join(text), offsets)


class Lines:
    """The lines of a file: from an offset to line and column and back."""

    __slots__ = ("starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        find = text.find("\n")
        while find >= 0:
            self.starts.append(find + 1)
            find = text.find("\n", find + 1)

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> Mapped:
        """Return a line by its number from 1, without its break."""
        start = self.starts[number - 1]
        end = self.starts[number] - 1 if number < len(self.starts) else len(self.text)
        return Mapped.plain(self.text[start:end].removesuffix("\r"), start)

    def __len__(self) -> int:
        return len(self.starts)

"""The errors this product raises on purpose; only the command line turns them into exit codes."""


class ForensicsError(Exception):
    """Anything that went wrong and was foreseen; the message names the file and the next step."""


class UsageError(ForensicsError):
    """The call itself was wrong: an option, a value, a combination (exit code 2)."""


class ConfigError(UsageError):
    """A configuration file or a catalogue entry could not be understood (exit code 2)."""


class InputError(ForensicsError):
    """No input could be read at all (exit code 3).

    Attributes:
        path: what was to be read, as the operator named it; None when not one path is at fault.
        line: one-based line number where the trouble sits; None when unknown.
    """

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


class InternalError(ForensicsError):
    """A promise inside the product was broken: please report it with the input."""

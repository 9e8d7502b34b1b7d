"""Request lines: received, added, finished, aborted, failed, answered.

Prompt text in these lines can be anything, fake log lines included (it is repr-escaped). It is
never kept: of a logged prompt remain its length and a chain of block hashes, enough to see which
prefixes repeat. Each hash covers its block and all before it: 16 tokens where token ids are logged,
64 characters where only the text is.
"""

import hashlib
import re

from parsers.vllm_log.interface import Fields, LogPattern, integer, pattern

TOKENS_PER_BLOCK = 16
CHARS_PER_BLOCK = 64
MAX_BLOCKS = 512  # 8,192 tokens; a guess that bounds the row, longer prompts keep their length

_RECEIVED = re.compile(r"Received request (?P<request_id>.*?)(?:: (?P<rest>.*)|$)", re.DOTALL)
_TOKEN_IDS = re.compile(r"prompt[_ ]token[_ ]ids: \[(?P<ids>[\d, ]*)\]")
_PARAMETER = re.compile(r"\b(?P<name>max_tokens|n)=(?P<value>\d+)\b")
_QUOTED = re.compile(r"""prompt: (?P<quote>['"])""")


def _chain(blocks: list[bytes]) -> list[str]:
    hashes: list[str] = []
    state = hashlib.blake2b(digest_size=8)
    for block in blocks[:MAX_BLOCKS]:
        state.update(block)
        hashes.append(state.copy().hexdigest())
    return hashes


def token_hashes(tokens: list[str]) -> list[str]:
    """Hash full blocks of token ids, each with all blocks before it."""
    full = len(tokens) // TOKENS_PER_BLOCK
    return _chain(
        [
            (",".join(tokens[at : at + TOKENS_PER_BLOCK]) + ";").encode()
            for at in range(0, full * TOKENS_PER_BLOCK, TOKENS_PER_BLOCK)
        ]
    )


def text_hashes(text: str) -> list[str]:
    """Hash full blocks of prompt text, each with all blocks before it."""
    full = len(text) // CHARS_PER_BLOCK
    return _chain(
        [
            text[at : at + CHARS_PER_BLOCK].encode("utf-8", "surrogatepass")
            for at in range(0, full * CHARS_PER_BLOCK, CHARS_PER_BLOCK)
        ]
    )


def _quoted(rest: str) -> tuple[str, int] | None:
    """Return the prompt's repr without quotes and where it ends; None when none is logged."""
    start = _QUOTED.match(rest)
    if start is None:
        return None
    quote = start["quote"]
    at = start.end()
    end = at
    while True:
        end = rest.find(quote, end)
        if end < 0:
            return rest[at:], len(rest)
        backslashes = end - len(rest[at:end].rstrip("\\")) - at
        if backslashes % 2 == 0:
            return rest[at:end], end + 1
        end += 1


def _received(message: str) -> Fields | None:
    match = _RECEIVED.fullmatch(message)
    if match is None:
        return None
    found: Fields = {"request_id": match["request_id"]}
    rest = match["rest"] or ""
    prompt = _quoted(rest)
    after = rest if prompt is None else rest[prompt[1] :]
    ids = _TOKEN_IDS.search(after)
    for parameter in _PARAMETER.finditer(after[:8192]):
        value = integer(parameter["value"])
        if value is not None:
            found.setdefault(parameter["name"], value)
    if ids is not None and ids["ids"].strip():
        tokens = ids["ids"].replace(" ", "").split(",")
        found.update(
            block_hashes=token_hashes(tokens),
            unit="tokens",
            block=TOKENS_PER_BLOCK,
            length=len(tokens),
        )
    elif prompt is not None:
        found.update(
            block_hashes=text_hashes(prompt[0]),
            unit="chars",
            block=CHARS_PER_BLOCK,
            length=len(prompt[0]),
        )
    return found


PATTERNS: tuple[LogPattern, ...] = (
    LogPattern(
        name="request_received",
        kind="request_received",
        make_fields=_received,
        gates=("Received request ",),
        since="0.2.0",
        until="0.33.0",
    ),
    pattern("request_added", "Added request {request_id:s}.", since="0.5.3", until="0.33.0"),
    pattern("request_finished", "Finished request {request_id:s}.", since="0.2.0", until="0.10.2"),
    pattern(
        "request_aborted",
        "Aborted request {request_id:w}.",
        "Aborted request(s) {request_ids:s}.",
        "Request {request_id:w} aborted.",
        since="0.2.0",
        until="0.33.0",
    ),
    pattern(
        "request_failed_dead",
        "Request {request_id:w} failed (engine dead).",
        kind="request_failed",
        constants={"reason": "engine dead"},
        since="0.8.5",
        until="0.33.0",
    ),
    pattern(
        "request_failed",
        "Request {request_id:w} failed (bad request)[[: {error:s}]].",
        "Request {request_id:w} failed (input error): {error:s}.",
        "Request {request_id:w} failed due to {error:s}.",
        "Request {request_id:w} failed validation: {error:s}",
        "Request {request_id:w} failed.",
        since="0.8.5",
        until="0.33.0",
    ),
    pattern(
        "request_response",
        "Generated response {request_id:w}[[ {:s}]]: output: {:s}",
        "Generated response {request_id:w} details: output_token_ids: {:s}",
        since="0.10.1",
        until="0.33.0",
        ignored=True,
    ),
)

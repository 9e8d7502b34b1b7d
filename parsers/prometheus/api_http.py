"""Speaks HTTP to a metrics server: authentication, TLS, time-outs, retries, bounded answers."""

import base64
import gzip
import http.client
import re
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from forensics import __version__
from forensics.errors import ForensicsError, InputError, UsageError

MAX_ANSWER_BYTES = 1 << 30
"""A larger answer is refused; the caller asks for less at a time."""

_RETRIED = (408, 425, 429, 500, 502, 503, 504)
_PAGES = re.compile(r"/(?:api/v1/\w+|graph|query|classic/graph|targets|-/\w+)/?\Z")
_REASON = re.compile(rb'"error"\s*:\s*"((?:[^"\\]|\\.){0,400})')
_LONGEST_WAIT_S = 60.0


class RefusedError(ForensicsError):
    """The server understood and said no.

    Attributes:
        status: HTTP status.
        reason: what the server said, shortened.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status}: {reason}")
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Login:
    """How to be let in. None of it appears in messages.

    Attributes:
        token: bearer token.
        user / password: basic authentication.
        headers: further headers, such as ``X-Scope-OrgID`` of Mimir and Cortex.
    """

    token: str | None = field(default=None, repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """How to trust the server, and be trusted by it.

    Attributes:
        ca_file: certificates to trust instead of the system's.
        cert_file / key_file: own certificate, and its key when that is another file.
        insecure: accept any certificate.
    """

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class Connection:
    """A server to ask.

    Attributes:
        url: base address, such as ``http://prometheus:9090`` or ``https://mimir/prometheus``; the
            address of a page or of an API call of it will do too.
        login / tls: see there.
        timeout_s: for a connection and between two pieces of an answer.
        retries: further attempts after failures that may pass.
        sleep: waits some seconds; for tests.
    """

    url: str
    login: Login = field(default_factory=Login)
    tls: Tls = field(default_factory=Tls)
    timeout_s: float = 60.0
    retries: int = 4
    sleep: Callable[[float], None] = time.sleep

    @property
    def shown(self) -> str:
        """Return the address without what may be secret in it."""
        try:
            parts = urlsplit(self.url)
        except ValueError as error:
            raise UsageError(
                f"{self.url!r} is no address of a server ({error}); write http://host:9090"
            ) from error
        return urlunsplit((parts.scheme, _host(parts.netloc), _PAGES.sub("", parts.path), "", ""))

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> bytes:
        """Fetch an API path below the base address.

        Raises:
            RefusedError: the server refuses; asking again would not help.
            InputError: the server cannot be reached or keeps failing.
            UsageError: the address or the TLS files make no sense.
        """
        query = f"?{urlencode(parameters)}" if parameters else ""
        return self.fetch(self.shown.rstrip("/") + path + query)

    def fetch(self, url: str) -> bytes:
        """Fetch an address of this server; see `get`."""
        opener = self._opener()
        request = urllib.request.Request(url, headers=self._headers())
        for attempt in range(self.retries + 1):
            wait = min(0.5 * 2**attempt, _LONGEST_WAIT_S)
            try:
                with opener.open(request, timeout=self.timeout_s) as answer:
                    return _body(answer, answer.headers.get("Content-Encoding", ""))
            except urllib.error.HTTPError as error:
                failure = f"HTTP {error.code}: {_reason(error)}"
                if error.code not in _RETRIED:
                    raise RefusedError(error.code, failure.partition(": ")[2]) from error
                if attempt == self.retries and error.code in (503, 504):
                    # How Prometheus says that a query took too long: less at a time may do.
                    raise RefusedError(error.code, failure.partition(": ")[2]) from error
                wait = _asked_to_wait(error.headers.get("Retry-After")) or wait
            except ssl.SSLError as error:
                raise InputError(f"{self.shown}: TLS: {error.reason or error}") from error
            except (OSError, http.client.HTTPException, EOFError, zlib.error) as error:
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                if isinstance(reason, ssl.SSLError):
                    raise InputError(
                        f"{self.shown}: TLS: {reason.reason or reason}; --ca-file names the "
                        "certificates to trust"
                    ) from error
                failure = str(reason) or type(reason).__name__
            if attempt < self.retries:
                self.sleep(wait)
        raise InputError(
            f"{self.shown} does not answer ({failure}; tried {self.retries + 1} times)", self.shown
        )

    def _opener(self) -> urllib.request.OpenerDirector:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{self.shown!r} is no address of a server; write http://host:9090")
        handlers: list[urllib.request.BaseHandler] = [_SameHost()]
        if parts.scheme == "https":
            handlers.append(urllib.request.HTTPSHandler(context=_context(self.tls)))
        return urllib.request.build_opener(*handlers)

    def _headers(self) -> dict[str, str]:
        parts, login = urlsplit(self.url), self.login
        headers = {
            "User-Agent": f"forensics/{__version__}",
            "Accept-Encoding": "gzip",
            **login.headers,
        }
        user, password = login.user, login.password
        if user is None and parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
        if login.token is not None:
            headers["Authorization"] = f"Bearer {login.token.strip()}"
        elif user is not None:
            pair = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        if any("\n" in text or "\r" in text for text in headers.values()):
            raise UsageError("a header, token or password has a line break in it")
        return headers


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects within a host only: a login must not travel to another one."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        downgraded = old.scheme == "https" and new.scheme != "https"
        if old.hostname != new.hostname or downgraded:
            raise RefusedError(
                code, f"redirects to {new.scheme}://{new.hostname}: give that address"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _host(netloc: str) -> str:
    """Return host and port without user and password."""
    return netloc.rpartition("@")[2]


def _context(tls: Tls) -> ssl.SSLContext:
    """Make the TLS settings of a connection."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"the TLS files cannot be used: {error}") from error
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _body(answer: IO[bytes], encoding: str) -> bytes:
    """Read an answer, unpacked, up to the bound."""
    packed = encoding == "gzip"
    stream = cast(IO[bytes], gzip.GzipFile(fileobj=answer)) if packed else answer
    body = stream.read(MAX_ANSWER_BYTES + 1)
    if len(body) > MAX_ANSWER_BYTES:
        raise RefusedError(413, f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
    left = None if packed else getattr(answer, "length", None)  # what Content-Length promised
    if left:
        # Asked for so many bytes, http.client takes a closed connection for the end.
        raise http.client.IncompleteRead(body, left)
    return body


def _reason(error: urllib.error.HTTPError) -> str:
    """Return what the server says about a failure, on one line."""
    try:
        encoding = error.headers.get("Content-Encoding", "")
        body = error.read(1 << 16)
        body = zlib.decompress(body, 31) if encoding == "gzip" else body
    except (OSError, zlib.error, http.client.HTTPException):
        body = b""
    match = _REASON.search(body)
    text = (match[1] if match else body[:200]).decode("utf-8", "replace")
    clean = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return clean or error.reason


def _asked_to_wait(text: str | None) -> float | None:
    """Return the seconds that a server asks for before the next attempt."""
    return min(float(text), _LONGEST_WAIT_S) if text is not None and text.isdecimal() else None

"""Requests to the daemon: HTTP and JSON on its Unix socket, with one connection per request."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import socket as sockets
import stat
from typing import Any

from cosched.errors import _OF_CODE, CoschedError, NoDaemon, ProtocolError, VersionError

SYSTEM_SOCKET = "/run/cosched/coschedd.sock"
#: MAJOR.MINOR of the interface that this package speaks (docs/schema/openapi.json).
API_VERSION = "1.10"
#: Longer than any answer of a daemon that lives takes, and larger than any.
ANSWER_TIMEOUT_S = 30.0
ANSWER_BYTES_MAX = 256 << 20


def find_sockets(named: str | os.PathLike[str] | None) -> list[str]:
    """The sockets to try, in this order: only the named one, else the system's daemon, then the user's own.
    The rule is the same as in the command (crates/cosched-api/src/socket.rs)."""
    choice = os.fspath(named) if named is not None else os.environ.get("COSCHED_SOCKET")
    if choice:
        return [choice]
    if os.getuid() == 0:
        return [SYSTEM_SOCKET]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    directory = f"{runtime}/cosched" if _is_own_directory(runtime) else f"/tmp/cosched-{os.getuid()}"
    return [SYSTEM_SOCKET, f"{directory}/coschedd.sock"]


def _is_own_directory(path: str) -> bool:
    """Not when it is another user's (`su`), or not there (a container)."""
    try:
        facts = os.stat(path)
    except OSError:
        return False
    return path.startswith("/") and stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()


def _check_directory(path: str) -> None:
    """Refuses a directory in which another user may have put a fake daemon."""
    directory = os.path.dirname(path) or "."
    try:
        link, facts = os.lstat(directory), os.stat(directory)
    except FileNotFoundError:
        return
    hint = "set XDG_RUNTIME_DIR to a directory of your own, or name a socket with COSCHED_SOCKET"
    if stat.S_ISLNK(link.st_mode) and link.st_uid != os.getuid():
        raise _unreachable(path, f"{directory} is a link of another user's (uid {link.st_uid})", hint)
    if facts.st_uid not in (os.getuid(), 0):
        raise _unreachable(path, f"{directory} belongs to another user (uid {facts.st_uid})", hint)
    mode = facts.st_mode
    if mode & 0o022 and not mode & stat.S_ISVTX:
        raise _unreachable(path, f"{directory} is writable by other users", hint)


def _unreachable(path: str, why: str, hint: str = "") -> NoDaemon:
    hint = hint or "`cosched run -- COMMAND` starts one for you; `systemctl start coschedd` starts the system's"
    return NoDaemon(f"no cosched daemon answers on {path}", why, hint)


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "the socket does not exist: no daemon was started"
    if isinstance(error, ConnectionRefusedError):
        return "the socket exists, but no daemon listens on it: the daemon has ended"
    if isinstance(error, PermissionError):
        return "this user may not open the socket"
    # socket.timeout is another class before Python 3.10, and asyncio.TimeoutError before 3.11.
    if isinstance(error, (TimeoutError, sockets.timeout)):
        return "the daemon did not answer in time"
    if isinstance(error, ConnectionError):
        return "the connection broke: the daemon has ended"
    return error.strerror or str(error)


def _connect(named: str | os.PathLike[str] | None, timeout_s: float) -> tuple[str, sockets.socket]:
    paths = find_sockets(named)
    while True:
        path = paths.pop(0)
        stream = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        try:
            stream.settimeout(timeout_s)
            stream.connect(path)
            return path, stream
        except OSError as error:
            stream.close()
            if not paths or not isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
                raise _unreachable(path, _why(error)) from None
            _check_directory(paths[0])


def _request(method: str, target: str, body: Any) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {target} HTTP/1.1\r\nHost: cosched\r\nCosched-Api: {API_VERSION}\r\nConnection: close\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    return head.encode("ascii") + b"\r\n" + content


class _Received:
    """A received response, in the form that http.client reads."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._content)


def _answer(content: bytes) -> Any:
    """The value in a response. Raises an error if the daemon refused the request."""
    try:
        response = http.client.HTTPResponse(_Received(content))  # type: ignore[arg-type]
        response.begin()
        text = response.read()
    except (http.client.HTTPException, OSError) as error:
        raise _not_understood(repr(error)) from None
    if response.headers.get_content_type() == "application/json":
        try:
            value = json.loads(text)
        except ValueError as error:
            raise _not_understood(str(error)) from None
    else:
        value = text.decode(errors="replace")
    if response.status < 300:
        return value
    if not isinstance(value, dict) or not {"code", "what", "why", "hint"} <= value.keys():
        raise _not_understood(f"HTTP status {response.status} {str(value)[:200]}")
    daemon = response.headers.get("Cosched-Api", "1.0")
    if daemon.split(".")[0] != API_VERSION.split(".")[0]:
        what = f"the daemon speaks version {daemon} of the interface, this package version {API_VERSION}"
        raise VersionError(what, f"{value['what']}: {value['why']}", "install package and daemon of the same version")
    raise _OF_CODE.get(value["code"], CoschedError)(value["what"], value["why"], value["hint"])


def _not_understood(why: str) -> ProtocolError:
    hint = "is this cosched's socket, and is the daemon of the same version?"
    return ProtocolError("the daemon's answer was not understood", why, hint)


def ask(socket: str | os.PathLike[str] | None, method: str, target: str, body: Any = None, more_s: float = 0) -> Any:
    """Sends a request and waits for the answer, for at most 30 s plus `more_s`."""
    path, stream = _connect(socket, ANSWER_TIMEOUT_S + more_s)
    content = bytearray()
    with stream:
        try:
            stream.sendall(_request(method, target, body))
            while piece := stream.recv(1 << 16):
                content += piece
                _bound(content)
        except OSError as error:
            raise _unreachable(path, _why(error)) from None
    return _whole(path, content)


async def ask_async(socket: str | os.PathLike[str] | None, method: str, target: str, body: Any = None, more_s: float = 0) -> Any:
    """Like `ask`, without blocking the event loop."""
    path, stream = await asyncio.to_thread(_connect, socket, ANSWER_TIMEOUT_S)
    stream.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=stream)
    content = bytearray()

    async def exchange() -> None:
        writer.write(_request(method, target, body))
        await writer.drain()
        while piece := await reader.read(1 << 16):
            content.extend(piece)
            _bound(content)

    try:
        await asyncio.wait_for(exchange(), ANSWER_TIMEOUT_S + more_s)
    except asyncio.TimeoutError:
        raise _unreachable(path, _why(TimeoutError())) from None
    except OSError as error:
        raise _unreachable(path, _why(error)) from None
    finally:
        writer.close()
    return _whole(path, content)


def _bound(content: bytearray) -> None:
    if len(content) > ANSWER_BYTES_MAX:
        raise _not_understood(f"it is longer than {ANSWER_BYTES_MAX >> 20} MiB")


def _whole(path: str, content: bytearray) -> Any:
    if not content:
        raise _unreachable(path, "the connection broke: the daemon has ended")
    return _answer(bytes(content))

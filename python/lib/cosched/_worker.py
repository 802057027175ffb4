"""The process of a call of CoschedExecutor: it reads the call from standard input, a socket, and sends the outcome back on it."""

import io
import multiprocessing.spawn
import os
import pickle
import socket
import sys
import threading
import traceback


#: Whether this is the process of a call, and imports what the call names.
is_preparing = False
#: Whether the call has returned: whoever has the answer hangs up.
_has_answer = False


def _read(stream: socket.socket, count: int) -> bytes:
    content = bytearray()
    while len(content) < count:
        piece = stream.recv(min(count - len(content), 1 << 20))
        if not piece:
            sys.exit(1)
        content += piece
    return bytes(content)


def _end_with(stream: socket.socket) -> None:
    """Ends this process when its caller has ended or no longer wants the outcome."""
    try:
        stream.recv(1)
    except OSError:
        pass
    if not _has_answer:
        os._exit(1)


def _call(content: bytes) -> bytes:
    global is_preparing
    try:
        calls = io.BytesIO(content)
        is_preparing = True
        multiprocessing.spawn.prepare(pickle.load(calls))
        function, args, kwargs = pickle.load(calls)
        is_preparing = False
        return pickle.dumps((True, function(*args, **kwargs), ""))
    except BaseException as error:
        text = traceback.format_exc()
        try:
            answer = pickle.dumps((False, error, text))
            pickle.loads(answer)
            return answer
        except Exception:
            stands_in = RuntimeError(f"{type(error).__name__}: {error} (it cannot be pickled)")
            return pickle.dumps((False, stands_in, text))


def main() -> None:
    """Executes one call."""
    stream = socket.socket(fileno=os.dup(0))
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    content = _read(stream, int.from_bytes(_read(stream, 8), "little"))
    threading.Thread(target=_end_with, args=(stream,), daemon=True).start()
    global _has_answer
    answer = _call(content)
    _has_answer = True
    # Before anything else can fail, as writing what the function has printed.
    stream.sendall(len(answer).to_bytes(8, "little") + answer)
    sys.stdout.flush()


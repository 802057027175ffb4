"""The magic `%%cosched` for IPython and Jupyter.

%%cosched [OPTIONS OF cosched run] [-- COMMAND]

runs the cell as a job: as a Python program, or as the standard input of a command. Its output is shown as it is
written; a nonzero exit code raises CalledProcessError. Interrupting the kernel kills the job.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from typing import IO, Any

from cosched._command import Report, StrPath, find_command
from cosched._jobs import end_run, socket_of


def words_of(line: str, *more: str) -> list[str]:
    """The words of the launcher's command line.

    >>> words_of("--cpus 2 -- sh -e", "--report", "file")[1:]
    ['run', '--report', 'file', '--cpus', '2', '--', 'sh', '-e']
    """
    words = shlex.split(line)
    command = words[words.index("--") + 1:] if "--" in words else [sys.executable, "-"]
    options = words[: words.index("--")] if "--" in words else words
    return [find_command(), "run", *more, *options, "--", *command]


def cosched(line: str, cell: str) -> None:
    """%%cosched [OPTIONS OF cosched run] [-- COMMAND]: runs the cell as a job, as a Python program or as COMMAND's input."""
    report = Report()
    try:
        _run(words_of(line, *report.option), cell, report)
    finally:
        report.close()


def _run(words: list[str], cell: str, report: Report) -> None:
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    threads = [
        threading.Thread(target=_feed, args=(process.stdin, cell), daemon=True),
        threading.Thread(target=_show, args=(process.stderr, sys.stderr), daemon=True),
    ]
    with process:
        try:
            for thread in threads:
                thread.start()
            _show(process.stdout, sys.stdout)
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            end_run(process, report, socket_in(words))
            raise
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, words)


def socket_in(words: list[str]) -> StrPath | None:
    """The daemon's socket that the words before the command name, else the usual one."""
    own = words[: words.index("--")] if "--" in words else words
    for at, word in enumerate(own):
        if word == "--socket" and at + 1 < len(own):
            return own[at + 1]
        if word.startswith("--socket="):
            return word.removeprefix("--socket=")
    return socket_of({}, None)


def _feed(stream: IO[str], text: str) -> None:
    try:
        with stream:
            stream.write(text)
    except BrokenPipeError:
        pass  # The command does not read its input.


def _show(stream: IO[str], where: Any) -> None:
    for line in stream:
        where.write(line)
        where.flush()


def load(shell: Any) -> None:
    """Registers the magic in an IPython shell."""
    shell.register_magic_function(cosched, magic_kind="cell")

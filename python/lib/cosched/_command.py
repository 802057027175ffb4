"""The command `cosched`: finds it, and runs `cosched run` with options as keywords. All jobs are launched by it."""

from __future__ import annotations

import difflib
import errno
import functools
import json
import os
import re
import shutil
import site
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Literal, TypedDict

from cosched import forms
from cosched._typing import TypeAlias
from cosched.errors import CommandMissing, CoschedError, LaunchError, _of_text

StrPath: TypeAlias = "str | os.PathLike[str]"
#: What a command is made of: a program and its arguments.
Command: TypeAlias = "Sequence[str | bytes | os.PathLike[str]]"

#: What `cosched run` exits with when it is cosched that failed.
EXIT_FAILED = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127


class RunOptions(TypedDict, total=False):
    """The options of `cosched run`, as keywords of `run`, `submit` and CoschedExecutor. `cosched run --help` describes them."""

    klass: Literal["express", "interactive", "batch", "standby"]
    """The class, which is its urgency (`--class`)."""
    cpus: int
    """Concurrent CPUs of the job."""
    nodes: str | list[str]
    """In a cluster: nodes with CPUs and memory, as "a:2,b:2:4G"."""
    queue: str
    """The queue, if queues are configured."""
    on_node_loss: Literal["kill", "keep", "requeue"]
    """In a cluster: what to do on a node failure."""
    share: float | str
    """At most this share of the time: 0.5 or "50%"."""
    mem: int | str
    """Memory that the job is expected to use, in bytes or as "4G"."""
    mem_limit: int | str
    """The maximum memory that it may use on a node."""
    time: float | str
    """The maximum run time, in s or as "2h"; then SIGTERM, and SIGKILL after `grace`."""
    grace: float | str
    """With `time`: the time that the job has to end after SIGTERM, in s."""
    begin: str
    """Start no earlier than this: "14:30", "2026-12-31T08:00", "30m"."""
    after: int | str | list[int | str]
    """Start when these jobs have ended: 7, "7:any", or "7:ok" (only if its exit code is 0)."""
    output: StrPath
    """Write standard output to this file; %j is the job's id."""
    error: StrPath
    """Write standard error to this file."""
    name: str
    """A name for the job."""
    policy: Literal["auto", "gang", "local", "pb", "dcs"]
    """The job's own policy."""
    wait: str
    """How its processes wait for messages: "auto", "busy", "spin-block", "spin-yield:50us", "micro", "off"."""
    strategy: str
    """Policy and waiting by their short name in the literature, such as "PB-SB"."""
    leftovers: Literal["wait", "kill"]
    """What to do with processes that remain when the command has ended."""
    socket: StrPath
    """The daemon's socket."""


def find_command() -> str:
    """The command `cosched`: `$COSCHED_COMMAND`, else the one that was installed with this package, else the one on PATH.

    Raises CommandMissing.
    """
    named = os.environ.get("COSCHED_COMMAND")
    if named:
        found = shutil.which(named)
        if found is None:
            hint = "let it name the command `cosched`, or unset it"
            raise CommandMissing(f"{named} cannot be executed", "COSCHED_COMMAND names it", hint)
        return found
    folders = [sysconfig.get_path("scripts"), os.path.join(site.getuserbase(), "bin"), os.environ.get("PATH", os.defpath)]
    found = shutil.which("cosched", path=os.pathsep.join(folders))
    if found is None:
        hint = "install a wheel that has it (docs/install.md), or name it in COSCHED_COMMAND"
        raise CommandMissing("the command `cosched` was not found", f"it is not in {', '.join(folders[:2])} nor on PATH", hint)
    return found


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The words for `cosched run`. Options that are not in RunOptions are looked up in the command's help, which may be newer.

    >>> option_words({"klass": "batch", "cpus": 2, "share": 0.5, "nodes": ["a:2", "b:2"], "name": None})
    ['--class=batch', '--cpus=2', '--share=50%', '--nodes=a:2,b:2']
    """
    words = []
    for keyword, value in options.items():
        if keyword not in RunOptions.__annotations__ and keyword not in _help_options():
            known = sorted(RunOptions.__annotations__ | dict.fromkeys(_help_options()))
            near = difflib.get_close_matches(keyword, known, 1)
            raise TypeError(f"no option {keyword!r}" + (f"; is it {near[0]!r}?" if near else "") + f"; options are {', '.join(known)}")
        if keyword == "share" and isinstance(value, (int, float)):
            value = f"{value * 100:g}%"
        elif keyword in ("time", "grace") and isinstance(value, (int, float)):
            value = f"{value}s"
        elif isinstance(value, (list, tuple, set)):
            value = ",".join(map(str, value))
        name = "--class" if keyword == "klass" else f"--{keyword.replace('_', '-')}"
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words.append(f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return words


@functools.cache
def _help_options() -> frozenset[str]:
    """The keywords of all options in `cosched run --help`, except those that `run` and `submit` set themselves."""
    names = re.findall(r"^ +(?:-\w, )?--([\w-]+)", run_command("run", "--help"), re.M)
    return frozenset(name.replace("-", "_") for name in names) - {"array", "class", "detach", "help", "json", "report"}


def launch_words(options: Mapping[str, Any], command: Command, *more: str) -> list[str | bytes]:
    """`cosched run OPTIONS -- COMMAND`."""
    if isinstance(command, (str, bytes)):
        hint = "split it (shlex.split), or run a shell: [\"sh\", \"-c\", command]"
        raise TypeError(f"a command is a list of words, not a {type(command).__name__}: {hint}")
    words = [os.fspath(word) for word in command]
    if not words:
        raise ValueError("a command has at least one word")
    return [find_command(), "run", *more, *option_words(options), "--", *words]


class Report:
    """The result of a `cosched run` in the foreground, which it writes to a file in memory (`--report`)."""

    def __init__(self) -> None:
        self._file = os.memfd_create("cosched-report", os.MFD_CLOEXEC)

    @property
    def option(self) -> tuple[str, str]:
        """The option of `cosched run` by which it reports to this file."""
        return "--report", f"/proc/{os.getpid()}/fd/{self._file}"

    def words(self, options: Mapping[str, Any], command: Command) -> list[str | bytes]:
        """The words of a `cosched run` that reports to this file."""
        return launch_words(options, command, *self.option)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def lines(self) -> list[dict[str, Any]]:
        """The complete lines that it has written so far."""
        text = os.pread(self._file, os.fstat(self._file).st_size, 0).decode()
        return json_lines(text[: text.rfind("\n") + 1])

    def job(self, command: Command, returncode: int, stderr: str | bytes | None) -> forms.Job | None:
        """The job of a run that has ended, or None if the command ran, but not as a job. Raises like `run` if it did not run."""
        lines = self.lines()
        for line in lines:
            if "failed" in line:
                raise refused(command, line["failed"]["code"], line["failed"]["message"])
        if not lines and returncode == EXIT_FAILED:
            raise refused(command, returncode, stderr.decode(errors="replace") if isinstance(stderr, bytes) else stderr or "")
        return next((line["registered"] for line in lines if "registered" in line), None)


def refused(command: Command, code: int, message: str) -> Exception:
    """The error of a `cosched run` that did not run its command."""
    if code == EXIT_NOT_FOUND:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(command[0]))
    if code == EXIT_NOT_EXECUTABLE:
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fsdecode(command[0]))
    error = _of_text(message, LaunchError, "cosched run failed")
    error.why = error.why or ("" if message else "its message is on standard error")
    error.hint = error.hint or "see `cosched run --help`"
    return error


def detach_words(options: Mapping[str, Any], command: Command, array: str | None = None) -> list[str | bytes]:
    """The words of a `cosched run` in the background, which prints its job, or the jobs of an array."""
    return launch_words(options, command, "--json", "--detach", *([] if array is None else [f"--array={array}"]))


def submitted(command: Command, returncode: int, stdout: str, stderr: str) -> list[forms.Job]:
    """The jobs of a `cosched run` in the background. Raises like `run`."""
    if returncode != 0:
        raise refused(command, returncode, stderr)
    return json_lines(stdout)


def json_lines(text: str) -> list[Any]:
    """A value for each line. Names may contain other characters at which `str.splitlines` splits."""
    return [json.loads(line) for line in text.split("\n") if line]


def lines_of(*words: str) -> Iterator[str]:
    """The lines of another `cosched` command, as they are written; closing the generator kills it. Raises like `run_command`."""
    # A pipe would be full one day: it is read at the end only.
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen([find_command(), *words], stdout=subprocess.PIPE, stderr=said, text=True, errors="replace") as process:
            assert process.stdout is not None
            try:
                yield from process.stdout
                process.wait()
            finally:
                # The generator was closed early.
                if process.poll() is None:
                    process.kill()
        check(words, process.returncode, messages(said))


def messages(said: IO[bytes]) -> str:
    """What a command has written to standard error, a file."""
    said.seek(0)
    return said.read().decode(errors="replace")


def check(words: Sequence[str], returncode: int | None, stderr: str) -> None:
    """Raises the error of a command, if it failed."""
    if returncode != 0:
        raise _of_text(stderr, CoschedError, f"cosched {words[0]} failed with exit code {returncode}")


def run_command(*words: str, input: str | None = None) -> str:
    """The standard output of another `cosched` command. Raises CoschedError with the command's message."""
    done = subprocess.run([find_command(), *words], input=input, capture_output=True, text=True, errors="replace")
    check(words, done.returncode, done.stderr)
    return done.stdout



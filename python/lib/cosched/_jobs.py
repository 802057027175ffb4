"""Jobs: run commands as gangs, inspect and control them.

`run` behaves like subprocess.run, `submit` starts a job in the background and returns it. Both start the command with `cosched run`,
and take its options as keywords (RunOptions). Everything else sends requests to the daemon's socket.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any

from cosched import forms
from cosched._api import ask
from cosched._command import Command, Report, RunOptions, StrPath, detach_words, lines_of, run_command, submitted
from cosched._typing import Self, TypeAlias, Unpack
from cosched.errors import Conflict, CoschedError, NotFound

__all__ = ["CompletedRun", "Job", "JobBase", "events", "job", "jobs", "limits", "run", "status", "submit", "submit_array"]

#: The daemon waits no longer for one request.
WAIT_S_MAX = 60.0
#: What a killed run gets to end in.
END_S_MAX = 10.0
File: TypeAlias = "int | IO[Any] | None"


class JobBase:
    """The state of a job. `snapshot` is the daemon's last answer; methods that send a request update it."""

    def __init__(self, snapshot: forms.Job, socket: StrPath | None = None) -> None:
        self.snapshot = snapshot
        self._socket = socket

    @property
    def id(self) -> int:
        """The job's number."""
        return self.snapshot["id"]

    @property
    def name(self) -> str:
        """The job's name."""
        return self.snapshot["name"]

    @property
    def state(self) -> forms.JobState:
        """The job's state in the last snapshot."""
        return self.snapshot["state"]

    @property
    def ended(self) -> bool:
        """Whether it had ended in the last snapshot."""
        return self.state in ("ended", "lost")

    @property
    def returncode(self) -> int | None:
        """The exit code of its command, -N if signal N ended it; None if it had not ended in the last snapshot, or its end was not observed."""
        end = self.snapshot.get("exit") or {}
        signal = end.get("signal")
        return -signal if signal is not None else end.get("code")

    def _take(self, snapshot: forms.Job) -> Self:
        self.snapshot = snapshot
        return self

    def _wait_target(self, left: float = WAIT_S_MAX) -> tuple[str, float]:
        """The target to request, and how long the daemon may take."""
        left = min(max(left, 0.0), WAIT_S_MAX)
        return f"/v1/jobs/{self.id}/wait?timeout_ms={int(left * 1000) + 1}", left

    def __repr__(self) -> str:
        return f"<cosched job {self.id} {self.name!r} {self.state}>"


class Job(JobBase):
    """A job of the daemon. Returned by `submit`, `job` and `jobs`; cosched.aio has a version for asyncio."""

    def refresh(self) -> Self:
        """Updates the snapshot."""
        return self._take(ask(self._socket, "GET", f"/v1/jobs/{self.id}"))

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits until all its processes have ended. Returns `returncode`; raises subprocess.TimeoutExpired after `timeout` s; with 0 it only asks."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not self.ended:
            target, more_s = self._wait_target(deadline - time.monotonic())
            if not self._take(ask(self._socket, "GET", target, more_s=more_s)).ended and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(self.snapshot["command"], timeout or 0)
        return self.returncode

    def suspend(self) -> Self:
        """Stops all its processes; they keep their memory."""
        return self._post("suspend", {})

    def resume(self) -> Self:
        """Lets a suspended job run again; returns a dropped one to gang scheduling."""
        return self._post("resume", {})

    def kill(self, signal: int | None = None, *, grace_s: float | None = None) -> Self:
        """Sends a signal to all its processes. Without `signal`: SIGTERM, and SIGKILL to those that are left after `grace_s` (5 s)."""
        return self._post("kill", kill_request(signal, grace_s))

    def set_class(self, klass: forms.Class) -> Self:
        """Changes its class; users may only lower it."""
        return self._post("class", {"class": klass})

    def set_policy(self, policy: forms.Policy | None) -> Self:
        """Changes its own policy; with None it follows the machine's."""
        return self._post("policy", {"policy": policy})

    def set_share(self, share: float | None) -> Self:
        """Limits it to this share of the time, 0 to 1; None removes the limit."""
        return self._post("share", {"share_max": share})

    def usage(self) -> forms.JobUse:
        """CPU time, memory and processes: current values or, if it has ended, those of its lifetime."""
        return usage_of(self.refresh())

    def events(self) -> list[forms.Event]:
        """The events of the job, oldest first."""
        events: list[forms.Event] = ask(self._socket, "GET", f"/v1/jobs/{self.id}/events")["events"]
        return events

    def log(self) -> str:
        """The output so far of a job in the background, standard output and standard error together."""
        return run_command(*self._log_words())

    def follow_log(self) -> Iterator[str]:
        """The lines of its output, as they are written, until it ends."""
        yield from lines_of(*self._log_words(), "--follow")

    def _log_words(self) -> list[str]:
        return log_words(self.refresh(), self._socket)

    def _post(self, what: str, body: Any) -> Self:
        return self._take(ask(self._socket, "POST", f"/v1/jobs/{self.id}/{what}", body))


def kill_request(signal: int | None, grace_s: float | None) -> dict[str, int]:
    """The body of a kill request."""
    if signal is None:
        return {"signal": 15, "grace_ms": round((5 if grace_s is None else grace_s) * 1000)}
    return {"signal": int(signal)} | ({} if grace_s is None else {"grace_ms": round(grace_s * 1000)})


def usage_of(job: JobBase) -> forms.JobUse:
    """The recorded resource usage of a job."""
    found: forms.JobUse | None = job.snapshot.get("use")
    return found or {"cpu_time_us": job.snapshot["cpu_time_ms"] * 1000}


def log_words(job: JobBase, socket: StrPath | None) -> list[str]:
    """The command that reads a job's output with the checks that another user's file needs."""
    if job.snapshot.get("log_path") is None:
        hint = "`submit` captures it, and so does run(..., capture_output=True)"
        raise Conflict(f"job {job.id} has no output file", "its output was not captured: it went where its launcher's went", hint)
    return [*socket_words(socket), "log", str(job.id)]


def find_job(which: int | str, known: list[forms.Job]) -> forms.Job:
    """A job by its number or its name; of several with the same name the one that has not ended, else the last."""
    named = [one for one in known if which in (one["id"], str(one["id"]), one["name"])]
    if not named:
        raise NotFound(f"no job {which!r}", "no job that the daemon knows has this number or name", "`cosched ps --all` lists them")
    return max(named, key=lambda one: (one["state"] not in ("ended", "lost"), one["id"]))


def job(which: int | str, *, socket: StrPath | None = None) -> Job:
    """A job by its number or its name. Raises NotFound."""
    if isinstance(which, int):
        return Job(ask(socket, "GET", f"/v1/jobs/{which}"), socket)
    return Job(find_job(which, ask(socket, "GET", "/v1/jobs?all=true")["jobs"]), socket)


def jobs(*, all: bool = False, socket: StrPath | None = None) -> list[Job]:
    """The jobs that have not ended, or all that the daemon remembers."""
    found = ask(socket, "GET", "/v1/jobs?all=true" if all else "/v1/jobs")["jobs"]
    return [Job(one, socket) for one in found]


def status(*, socket: StrPath | None = None) -> forms.Status:
    """The machine: CPUs, matrix, switches, and problems (`warnings`). Raises NoDaemon if none is running."""
    found: forms.Status = ask(socket, "GET", "/v1/status")
    return found


def limits(*, socket: StrPath | None = None) -> forms.LimitList:
    """The caller's limits with the daemon, and current usage."""
    found: forms.LimitList = ask(socket, "GET", "/v1/limits")
    return found


def events(*, follow: bool = False, after: str | None = None, socket: StrPath | None = None) -> Iterator[forms.StreamEvent]:
    """Events of jobs, the plan and the machine, as far as the daemon remembers: all of them, or those after the event with the `id`
    `after`. With `follow` also later events as they happen, across restarts of the daemon, until the iterator is closed."""
    for line in lines_of(*event_words(follow, after, socket)):
        event: forms.StreamEvent = json.loads(line)
        yield event


def event_words(follow: bool, after: str | None, socket: StrPath | None) -> list[str]:
    """The command that reads events, and resumes after a restart of the daemon."""
    options = [*(["--follow"] if follow else []), *([] if after is None else ["--after", after])]
    return [*socket_words(socket), "events", "--json", *options]


def socket_words(socket: StrPath | None) -> list[str]:
    """The global option that names a daemon."""
    return [] if socket is None else ["--socket", os.fspath(socket)]


class CompletedRun(subprocess.CompletedProcess[Any]):
    """A run that has ended, like the result of subprocess.run; `job` is its job, or None if no daemon can run (then the command ran with
    the wait library alone). `returncode` is 128 + N if signal N ended the command."""

    job: Job | None = None


def socket_of(options: RunOptions, env: Mapping[str, str] | None) -> StrPath | None:
    """The daemon's socket for a `cosched run` with these options."""
    return options.get("socket") or (os.environ if env is None else env).get("COSCHED_SOCKET") or None


def run(
    command: Command,
    *,
    input: str | bytes | None = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    text: bool | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunOptions],
) -> CompletedRun:
    """Runs a command as a job and waits for its end, like subprocess.run; the other keywords are options of `cosched run`.

    After `timeout` seconds the job is killed with all its processes, and subprocess.TimeoutExpired is raised. Raises LaunchError if the
    job was refused, FileNotFoundError or PermissionError if the command cannot be executed.

    >>> run(["echo", "hello"], capture_output=True, text=True, klass="batch").stdout
    'hello\\n'
    """
    if input is not None:
        stdin = subprocess.PIPE
    if capture_output:
        stdout = stderr = subprocess.PIPE
    report = Report()
    try:
        words = report.words(options, command)
        with subprocess.Popen(
            words, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=env, text=text, encoding=encoding, errors=errors
        ) as process:
            try:
                out, err = process.communicate(input, timeout=timeout)
            except BaseException as error:
                end_run(process, report, socket_of(options, env))
                if isinstance(error, subprocess.TimeoutExpired):
                    try:
                        out, err = process.communicate(timeout=1)
                    except subprocess.TimeoutExpired as late:
                        # What the command left behind holds the pipe open.
                        out, err = late.output, late.stderr
                    raise subprocess.TimeoutExpired(command, error.timeout, out, err) from None
                raise
        snapshot = report.job(command, process.returncode, err)
    finally:
        report.close()
    done = CompletedRun(command, process.returncode, out, err)
    done.job = None if snapshot is None else Job(snapshot, socket_of(options, env))
    if check:
        done.check_returncode()
    return done


def end_run(process: subprocess.Popen[Any], report: Report, socket: StrPath | None) -> None:
    """Kills the job that a `cosched run` has started, and waits for the launcher."""
    deadline = time.monotonic() + END_S_MAX
    while process.poll() is None and not report.lines() and time.monotonic() < deadline:
        # The job is not registered yet.
        time.sleep(0.02)
    with contextlib.suppress(CoschedError, LookupError, subprocess.TimeoutExpired):
        if process.poll() is None:
            Job(report.lines()[0]["registered"], socket).kill(9)
            process.wait(max(deadline - time.monotonic(), 0.1))
    process.kill()
    process.wait()


def submit(
    command: Command, *, cwd: StrPath | None = None, env: Mapping[str, str] | None = None, **options: Unpack[RunOptions]
) -> Job:
    """Starts a command as a job in the background and returns it; its output is in `Job.log`. The other keywords are options of
    `cosched run`. The job outlives this process. Raises like `run`.

    >>> job = submit(["sh", "-c", "echo done; exit 3"], policy="local")
    >>> job.wait(timeout=60)
    3
    >>> job.log()
    'done\\n'
    """
    return _detached(command, None, cwd, env, options)[0]


def submit_array(
    command: Command, array: str, *, cwd: StrPath | None = None, env: Mapping[str, str] | None = None, **options: Unpack[RunOptions]
) -> list[Job]:
    """Starts a job in the background for each index of `array`, e.g. "1-20", or "1-20%4" for at most 4 at a time. The environment
    variable COSCHED_ARRAY_INDEX has the job's index. Otherwise like `submit`."""
    return _detached(command, array, cwd, env, options)


def _detached(
    command: Command, array: str | None, cwd: StrPath | None, env: Mapping[str, str] | None, options: RunOptions
) -> list[Job]:
    done = subprocess.run(
        detach_words(options, command, array),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd=cwd, env=env,
    )
    return [Job(one, socket_of(options, env)) for one in submitted(command, done.returncode, done.stdout, done.stderr)]

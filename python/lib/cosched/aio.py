"""Jobs for asyncio: `run`, `submit`, `job`, `jobs`, `status` and a Job whose methods are coroutines; otherwise like those of cosched.

>>> import asyncio
>>> async def both():
...     runs = [run(["sh", "-c", f"exit {code}"], policy="local") for code in (1, 2)]
...     return [done.returncode for done in await asyncio.gather(*runs)]
>>> asyncio.run(both())
[1, 2]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import Any

from cosched import forms
from cosched import _jobs as sync
from cosched._api import ask_async
from cosched._command import Command, Report, RunOptions, StrPath, check, detach_words, find_command, json_lines, messages, submitted
from cosched.errors import CoschedError
from cosched._jobs import END_S_MAX, CompletedRun, File, JobBase, event_words, find_job, kill_request, log_words, socket_of, usage_of
from cosched._typing import Self, Unpack

__all__ = ["Job", "events", "job", "jobs", "limits", "run", "status", "submit"]

#: Longer than any event or line of a log that is text.
LINE_BYTES_MAX = 16 << 20


class Job(JobBase):
    """A job of the daemon; like cosched.Job, with coroutines."""

    async def refresh(self) -> Self:
        """Updates the snapshot."""
        return self._take(await ask_async(self._socket, "GET", f"/v1/jobs/{self.id}"))

    async def wait(self) -> int | None:
        """Waits until all its processes have ended, and returns `returncode`. For a time limit use asyncio.timeout or wait_for."""
        while not self.ended:
            target, more_s = self._wait_target()
            self._take(await ask_async(self._socket, "GET", target, more_s=more_s))
        return self.returncode

    async def suspend(self) -> Self:
        """Stops all its processes; they keep their memory."""
        return await self._post("suspend", {})

    async def resume(self) -> Self:
        """Lets a suspended job run again; returns a dropped one to gang scheduling."""
        return await self._post("resume", {})

    async def kill(self, signal: int | None = None, *, grace_s: float | None = None) -> Self:
        """Sends a signal to all its processes. Without `signal`: SIGTERM, and SIGKILL to those that are left after `grace_s` (5 s)."""
        return await self._post("kill", kill_request(signal, grace_s))

    async def set_class(self, klass: forms.Class) -> Self:
        """Changes its class; users may only lower it."""
        return await self._post("class", {"class": klass})

    async def set_policy(self, policy: forms.Policy | None) -> Self:
        """Changes its own policy; with None it follows the machine's."""
        return await self._post("policy", {"policy": policy})

    async def set_share(self, share: float | None) -> Self:
        """Limits it to this share of the time, 0 to 1; None removes the limit."""
        return await self._post("share", {"share_max": share})

    async def usage(self) -> forms.JobUse:
        """CPU time, memory and processes: current values or, if it has ended, those of its lifetime."""
        return usage_of(await self.refresh())

    async def events(self) -> list[forms.Event]:
        """The events of the job, oldest first."""
        events: list[forms.Event] = (await ask_async(self._socket, "GET", f"/v1/jobs/{self.id}/events"))["events"]
        return events

    async def log(self) -> str:
        """The output so far of a job in the background, standard output and standard error together."""
        return "".join([line async for line in _lines_of(*log_words(await self.refresh(), self._socket))])

    async def follow_log(self) -> AsyncIterator[str]:
        """The lines of its output, as they are written, until it ends."""
        async for line in _lines_of(*log_words(await self.refresh(), self._socket), "--follow"):
            yield line

    async def _post(self, what: str, body: Any) -> Self:
        return self._take(await ask_async(self._socket, "POST", f"/v1/jobs/{self.id}/{what}", body))


async def job(which: int | str, *, socket: StrPath | None = None) -> Job:
    """A job by its number or its name. Raises NotFound."""
    if isinstance(which, int):
        return Job(await ask_async(socket, "GET", f"/v1/jobs/{which}"), socket)
    return Job(find_job(which, (await ask_async(socket, "GET", "/v1/jobs?all=true"))["jobs"]), socket)


async def jobs(*, all: bool = False, socket: StrPath | None = None) -> list[Job]:
    """The jobs that have not ended, or all that the daemon remembers."""
    found = (await ask_async(socket, "GET", "/v1/jobs?all=true" if all else "/v1/jobs"))["jobs"]
    return [Job(one, socket) for one in found]


async def status(*, socket: StrPath | None = None) -> forms.Status:
    """The machine: CPUs, matrix, switches, and problems (`warnings`). Raises NoDaemon if none is running."""
    found: forms.Status = await ask_async(socket, "GET", "/v1/status")
    return found


async def limits(*, socket: StrPath | None = None) -> forms.LimitList:
    """The caller's limits with the daemon, and current usage."""
    found: forms.LimitList = await ask_async(socket, "GET", "/v1/limits")
    return found


async def events(*, follow: bool = False, after: str | None = None, socket: StrPath | None = None) -> AsyncIterator[forms.StreamEvent]:
    """Events of jobs, the plan and the machine; like cosched.events."""
    async for line in _lines_of(*event_words(follow, after, socket)):
        event: forms.StreamEvent = json.loads(line)
        yield event


async def _lines_of(*words: str) -> AsyncIterator[str]:
    """The lines of another `cosched` command, as they are written; closing the generator kills it."""
    # A pipe would be full one day: it is read at the end only.
    with tempfile.TemporaryFile() as said:
        process = await asyncio.create_subprocess_exec(find_command(), *words, stdout=subprocess.PIPE, stderr=said, limit=LINE_BYTES_MAX)
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                yield line.decode(errors="replace")
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        check(words, process.returncode, messages(said))


async def run(
    command: Command,
    *,
    input: str | bytes | None = None,
    capture_output: bool = False,
    check: bool = False,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    text: bool = False,
    encoding: str | None = None,
    **options: Unpack[RunOptions],
) -> CompletedRun:
    """Runs a command as a job; like cosched.run. If the task is cancelled (asyncio.timeout), the job is killed with all its
    processes."""
    if input is not None:
        stdin = subprocess.PIPE
    if capture_output:
        stdout = stderr = subprocess.PIPE
    encoding = encoding or ("utf-8" if text else None)
    content = input.encode(encoding or "utf-8") if isinstance(input, str) else input
    report = Report()
    try:
        words = report.words(options, command)
        process = await asyncio.create_subprocess_exec(*words, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=env)
        try:
            streams = await process.communicate(content)
        except BaseException:
            await asyncio.shield(_end(process, report, socket_of(options, env)))
            raise
        out, err = [stream if stream is None or encoding is None else stream.decode(encoding) for stream in streams]
        code = process.returncode or 0
        snapshot = report.job(command, code, err)
    finally:
        report.close()
    done = CompletedRun(command, code, out, err)
    done.job = None if snapshot is None else sync.Job(snapshot, socket_of(options, env))
    if check:
        done.check_returncode()
    return done


async def _end(process: asyncio.subprocess.Process, report: Report, socket: StrPath | None) -> None:
    """Kills the job that a `cosched run` has started, and waits for the launcher."""
    try:
        with contextlib.suppress(CoschedError, KeyError, asyncio.TimeoutError):
            await asyncio.wait_for(_kill(process, report, socket), END_S_MAX)
    except asyncio.CancelledError:
        # The loop ends: nothing more can be waited for.
        with contextlib.suppress(CoschedError, LookupError):
            sync.Job(report.lines()[0]["registered"], socket).kill(9)
        raise
    finally:
        if process.returncode is None:
            process.kill()
    await process.wait()


async def _kill(process: asyncio.subprocess.Process, report: Report, socket: StrPath | None) -> None:
    while process.returncode is None and not report.lines():
        # The job is not registered yet.
        await asyncio.sleep(0.02)
    if process.returncode is None:
        await Job(report.lines()[0]["registered"], socket).kill(9)
    await process.wait()


async def submit(
    command: Command, *, cwd: StrPath | None = None, env: Mapping[str, str] | None = None, **options: Unpack[RunOptions]
) -> Job:
    """Starts a command as a job in the background and returns it; like cosched.submit. If the task is cancelled meanwhile, the job is killed."""
    process = await asyncio.create_subprocess_exec(
        *detach_words(options, command),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=env,
    )
    answer = asyncio.ensure_future(process.communicate())
    try:
        await asyncio.shield(answer)
    except asyncio.CancelledError:
        out, _ = await answer
        for snapshot in json_lines(out.decode(errors="replace")):
            with contextlib.suppress(CoschedError):
                await Job(snapshot, socket_of(options, env)).kill(9)
        raise
    out, err = answer.result()
    [snapshot] = submitted(command, process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))
    return Job(snapshot, socket_of(options, env))

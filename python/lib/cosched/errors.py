"""The exceptions of this package. Every error says what happened, why, and what to do."""

from __future__ import annotations

__all__ = [
    "CoschedError", "CommandMissing", "Conflict", "Forbidden", "InvalidRequest", "JobEnded", "LaunchError", "LimitReached", "NoDaemon",
    "NotFound", "ProtocolError", "Unsupported", "VersionError",
]


class CoschedError(Exception):
    """An error of cosched.

    >>> error = CoschedError("no job 7", "ids go from 1 to 3", "`cosched ps --all` lists them")
    >>> print(error)
    no job 7
      why: ids go from 1 to 3
      hint: `cosched ps --all` lists them
    >>> error.hint
    '`cosched ps --all` lists them'
    """

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what, why, hint)
        self.what, self.why, self.hint = what, why, hint

    def __str__(self) -> str:
        return self.what + (f"\n  why: {self.why}" if self.why else "") + (f"\n  hint: {self.hint}" if self.hint else "")


class CommandMissing(CoschedError):
    """The command `cosched` is not installed."""


class LaunchError(CoschedError):
    """`cosched run` could not run the command; nothing has run."""


class JobEnded(CoschedError):
    """The job of a call ended without a result: it was killed, or its process exited."""


class NoDaemon(CoschedError):
    """There is no answer on the daemon's socket."""


class ProtocolError(CoschedError):
    """The daemon's answer does not follow the interface."""


class VersionError(CoschedError):
    """The daemon has another version of the interface."""


class InvalidRequest(CoschedError):
    """The daemon refused the request: it is invalid."""


class NotFound(CoschedError):
    """There is no such job, process or node."""


class Forbidden(CoschedError):
    """Permission denied: another user's job, or a right of administrators."""


class Conflict(CoschedError):
    """Not possible in the job's current state."""


class LimitReached(CoschedError):
    """A limit of the user or of the daemon is reached."""


class Unsupported(CoschedError):
    """This daemon or machine does not support it."""


#: The codes of the API (ErrorBody).
_OF_CODE: dict[str, type[CoschedError]] = {
    "invalid": InvalidRequest, "not-found": NotFound, "forbidden": Forbidden, "conflict": Conflict, "limit": LimitReached,
    "unsupported": Unsupported,
}


def _of_text(text: str, kind: type[CoschedError], otherwise: str) -> CoschedError:
    """The error that the command printed: `cosched: what`, and lines `why: …` and `hint: …`. For invalid options the usage follows after a
    blank line."""
    text = text.partition("\n\n")[0]
    parts = {"what": "", "why": "", "hint": ""}
    now = "what"
    for line in text.strip().splitlines():
        for name in ("why", "hint"):
            if line.startswith(f"  {name}: "):
                now, line = name, line.removeprefix(f"  {name}: ")
        parts[now] += line + "\n"
    parts = {name: part.strip() for name, part in parts.items()}
    return kind(parts["what"].removeprefix("cosched: ").removeprefix("error: ") or otherwise, parts["why"], parts["hint"])

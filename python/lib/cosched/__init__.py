"""cosched for Python.

Jobs: `run` (as subprocess.run), `submit`, `job`, `jobs`, `status`, and CoschedExecutor (as concurrent.futures); the same for asyncio
in `cosched.aio`. `cosched.pipeline` runs programs as pipelines of stages on recycled buffers. `%load_ext cosched` brings the Jupyter
magic `%%cosched`, `pytest --cosched` runs tests as jobs. docs/python.md is the guide.
"""

from typing import Any

from cosched import aio
from cosched._native import __version__
from cosched.errors import CoschedError
from cosched.executor import CoschedExecutor
from cosched._jobs import CompletedRun, Job, job, jobs, limits, run, status, submit

__all__ = [
    "CompletedRun", "CoschedError", "CoschedExecutor", "Job", "__version__", "aio", "job", "jobs", "limits", "load_ipython_extension",
    "run", "status", "submit",
]


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext cosched` calls."""
    from cosched._ipython import load

    load(shell)

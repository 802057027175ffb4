"""cosched for Python.

Jobs: `run` (like subprocess.run), `submit`, `job`, `jobs`, `status`, and CoschedExecutor (like concurrent.futures); the same for
asyncio in `cosched.aio`. `cosched.sim` is the simulator, `cosched.model` the model; `advise` recommends a policy. `cosched.pipeline`
runs programs as pipelines of stages on recycled buffers. `%load_ext cosched` loads the Jupyter magic `%%cosched`, `pytest -p cosched`
runs tests as jobs. docs/python.md is the guide.
"""

from typing import Any

from cosched import aio, model, sim
from cosched._native import __version__
from cosched.errors import CoschedError
from cosched.executor import CoschedExecutor
from cosched._jobs import CompletedRun, Job, events, job, jobs, limits, run, status, submit, submit_array
from cosched.model import advise

__all__ = [
    "CompletedRun", "CoschedError", "CoschedExecutor", "Job", "__version__", "advise", "aio", "events", "job", "jobs", "limits",
    "load_ipython_extension", "model", "run", "sim", "status", "submit", "submit_array",
]

#: What pytest loads besides this package after `-p cosched`.
pytest_plugins = ["cosched.pytest_plugin"]


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext cosched`."""
    from cosched._ipython import load

    load(shell)

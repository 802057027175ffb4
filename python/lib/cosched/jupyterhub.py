"""JupyterHub: each user's notebook server is a job. Needs JupyterHub.

In jupyterhub_config.py:

    c.JupyterHub.spawner_class = "cosched.jupyterhub.CoschedSpawner"
    c.CoschedSpawner.cosched_options = ["--class", "interactive", "--cpus", "2"]
"""

from __future__ import annotations

from typing import Any

from jupyterhub.spawner import LocalProcessSpawner
from traitlets import List, Unicode, default

from cosched._command import find_command


class CoschedSpawner(LocalProcessSpawner):  # type: ignore[misc]
    """A LocalProcessSpawner that runs each user's server, with everything that it starts, as a job of that user."""

    cosched_options = List(Unicode(), help="Options of `cosched run`.").tag(config=True)

    @default("shell_cmd")
    def _shell_cmd(self) -> list[Any]:
        # The spawner appends the server's command as one shell word. `exec` replaces the shell, so that the server gets
        # the signals.
        name = ["--name", f"jupyter-{self.user.name}"] if "--name" not in self.cosched_options else []
        return [find_command(), "run", *name, "--leftovers", "kill", *self.cosched_options, "--", "/bin/sh", "-c", 'eval "exec $0"']

"""pytest: `pytest -p cosched` runs the session as a job, so that parallel tests of several sessions share the CPUs as jobs.

The whole session is executed again under `cosched run`; with pytest-xdist (`-n`) each worker is a job instead. Options of
`cosched run` are given as one word: `--cosched-options="--policy gang --cpus 2"`. Inside a job nothing of this has an effect.

pytest loads this module in every session, as `cosched.pytest_plugin`, so that `--cosched` is known without `-p`; by `-p cosched` it loads the
package, which names this module as its plug-in.
"""

from __future__ import annotations

import os
import shlex
import sys

import pytest

from cosched._command import find_command
from cosched.errors import CoschedError


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the command-line options."""
    group = parser.getgroup("cosched", "jobs of cosched")
    group.addoption("--cosched", action="store_true", help="run the session, or with -n each worker, as a job of cosched")
    group.addoption("--cosched-options", metavar="WORDS", default="", help="options of `cosched run`; they imply --cosched")


# pytest-xdist's hook comes first (tryfirst), and sets there how its workers are started.
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Executes the session again, as a job."""
    words = shlex.split(config.getoption("cosched_options"))
    asked = config.getoption("cosched") or words or config.pluginmanager.has_plugin("cosched")
    if not asked or "COSCHED_JOB" in os.environ or "COSCHED_NO_DAEMON" in os.environ:
        return
    try:
        launch = [find_command(), "run", *words, "--"]
    except CoschedError as error:
        raise pytest.UsageError(str(error)) from None
    workers = [spec for spec in config.getoption("tx", None) or [] if spec == "popen"]
    if workers:
        config.option.tx = [f"popen//python={shlex.join([*launch, sys.executable])}"] * len(workers)
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(config.invocation_params.dir)
    os.execv(launch[0], [*launch, sys.executable, "-m", "pytest", *map(os.fspath, config.invocation_params.args)])

"""A daemon under names of its own for the commands of the documentation, and the code of its pages."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / os.environ.get("BUILT", "target/debug")
# The programs of the runners are beside the Python in which they are installed.
VENV = ROOT / "target/venv/bin"
RUNNERS = ROOT / "target/runners/bin"
LIMIT_S = 240


def blocks(text, language="sh"):
    """The fenced code of a page in a language, a text for each chapter, by its heading."""
    chapters, heading = {}, ""
    for part in re.split(r"(?m)^(?=## )", text):
        if part.startswith("## "):
            heading = part.splitlines()[0][3:]
        code = re.findall(rf"(?ms)^```{language}\n(.*?)^```$", part)
        if code:
            chapters[heading] = "".join(code)
    return chapters


class Lab:
    """A daemon under names of its own, and how many checks passed."""

    def __init__(self, installed=False, daemon=True, config=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cst-docs-"))
        self.folder.chmod(0o755)
        self.passed = self.failed = 0
        self.prefix = self.folder / "usr"
        self.bin = self.prefix / "bin" if installed else BUILT
        if installed:
            where = {"PREFIX": str(self.prefix), "SYSCONFDIR": str(self.folder / "etc"), "BUILT": str(BUILT), "STRIP": ""}
            subprocess.run([ROOT / "tools/install"], check=True, stdout=subprocess.DEVNULL, env=os.environ | where)
        socket = self.folder / "socket"
        self.daemon = None
        (self.folder / "cosched.toml").write_text(config)
        self.environment = os.environ | {
            "COSCHED_SOCKET": str(socket),
            "PATH": f"{self.bin}:{VENV}:{RUNNERS}:{os.environ['PATH']}",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        if not daemon:
            return
        words = ["--config", self.folder / "cosched.toml", "--socket", socket, "--state-dir", self.folder / "state"]
        log = open(self.folder / "daemon.log", "w")
        self.daemon = subprocess.Popen([self.bin / "coschedd", *words, "--cgroup", self.folder.name], stderr=log)
        end = time.monotonic() + 20
        while time.monotonic() < end and self.cosched("status").returncode:
            time.sleep(0.05)

    def page(self):
        """README.md, as it is installed."""
        return (self.prefix / "share/doc/cosched/README.md").read_text()

    def cosched(self, *words, HOME=None, **how):
        environment = self.environment | ({"HOME": HOME} if HOME else {})
        return subprocess.run(["cosched", *words], env=environment, capture_output=True, text=True, **how)

    def jobs(self):
        return self.cosched("ps", "--all", "--json").stdout.count('"id":')

    def as_user(self, home, uid, own=False):
        """How a user's command is started: beside root's daemon, or where its first `cosched run` starts one of the user's own."""
        places = {"HOME": "", "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": "state", "COSCHED_PIPELINE_DIR": "pipelines"}
        variables = {name: str(home / place) for name, place in places.items()} | ({"COSCHED_SOCKET": ""} if own else {})
        return {"cwd": home, "env": self.environment | variables, "user": uid, "group": uid, "extra_groups": []}

    def end_own(self, home, uid):
        """Ends a user's own daemon, and the user's jobs."""
        self.environment["COSCHED_SOCKET"] = str(home / "cosched/coschedd.sock")
        self.cosched("kill", "-9", "--user", str(uid))
        found = self.cosched("status", "--json").stdout
        if found:
            os.kill(json.loads(found)["pid"], signal.SIGTERM)
        end = time.monotonic() + 20
        while time.monotonic() < end and not self.cosched("status").returncode:
            time.sleep(0.05)

    def run(self, name, code, **how):
        folder, before = tempfile.mkdtemp(dir=self.folder), self.jobs()
        self.check(name, ["bash", "-euo", "pipefail", "-c", code], **({"cwd": folder, "env": self.environment} | how))
        if "user" not in how and self.jobs() == before:
            self.failed += 1
            print(f"FAILED: {name}: nothing that it ran was a job")

    def check(self, name, command, limit_s=LIMIT_S, **how):
        """Runs a command, which has to succeed; what it has printed."""
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, **how)
            code, said = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as e:
            code, said = f"none after {limit_s} s", f"{e.stdout}{e.stderr}"
        if code == 0:
            self.passed += 1
            return said
        self.failed += 1
        print(f"FAILED: {name}: exit code {code}\n" + "\n".join(f"    {line}" for line in said.splitlines()[-40:]))
        return said

    def end_launchers(self):
        """Detached launchers of waiting jobs wait a week for the next daemon."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"={self.folder}/".encode() in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:  # It has ended meanwhile.
                pass

    def end_jobs(self):
        if ids := re.findall(r'"id":(\d+)', self.cosched("ps", "--json").stdout):
            self.cosched("kill", "-9", *ids)
            self.cosched("wait", *ids)

    def end(self):
        if self.daemon:
            self.end_jobs()
            self.daemon.terminate()
            try:
                self.daemon.wait(20)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
        self.end_launchers()
        shutil.rmtree(self.folder, ignore_errors=True)

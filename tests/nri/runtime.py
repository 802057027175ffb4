"""A real containerd of its own for tests/nri/run: its folders and sockets are in the lab's directory, its pods' cgroups have the lab's name."""

import hashlib
import io
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/attacks"))
import lab as lab_module  # noqa: E402

BUILT = ROOT / "target/containerd"
IMAGE = "localhost/cosched-test:1"
# `tools/setup test` builds these; Debian's containerd 1.6 has an NRI of another kind.
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "crictl")
CALL_S = 120
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def missing():
    """What pods need and this machine lacks."""
    if os.geteuid() != 0:
        return "containers need root"
    for program in PROGRAMS:
        if not (BUILT / program).exists():
            return f"no {program} in target/containerd (tools/setup test)"
    if not shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin"):
        return "runc is not installed (tools/setup test)"
    if not Path("/bin/busybox").exists():
        return "no /bin/busybox (tools/setup test)"
    return None


def make_image(file):
    """An image of one program, busybox, as `docker save` writes it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add("/bin/busybox", "bin/busybox")
        for name in ("sh", "sleep"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": ARCHITECTURES[platform.machine()], "os": "linux",
        "config": {"Entrypoint": ["/bin/sleep", "1000000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(file, "w") as tar:
        for name, data in (
            ("config.json", json.dumps(config).encode()), ("layer.tar", layer.getvalue()), ("manifest.json", json.dumps(manifest).encode())
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


class Containerd:
    """The runtime; `crictl` does what a kubelet would. Pods have the host's network."""

    def __init__(self, lab):
        self.lab, self.dir = lab, lab.dir / "containerd"
        self.dir.mkdir()
        self.socket, self.nri_socket = self.dir / "c.sock", self.dir / "nri.sock"
        self.plugins, self.plugin_settings = self.dir / "plugins", self.dir / "conf.d"
        self.plugins.mkdir()
        self.plugin_settings.mkdir()
        self.parent = f"/{lab.cgroup}-pods"
        self.config = self.dir / "config.toml"
        self.config.write_text(self.settings())
        (self.dir / "crictl.yaml").write_text(f"runtime-endpoint: unix://{self.socket}\nimage-endpoint: unix://{self.socket}\ntimeout: {CALL_S}\n")
        self.process = None
        # containerd's shims have their sockets there, whatever its settings say.
        self.had_run = Path("/run/containerd").exists()
        lab.at_end(self.end)
        self.start()
        make_image(self.dir / "image.tar")
        self.call("ctr", "--address", self.socket, "--namespace", "k8s.io", "images", "import", "--snapshotter", "native", self.dir / "image.tar")

    def settings(self):
        """No snapshotter that mounts layers: nothing can be left of one."""
        others = ("internal.v1.opt", "snapshotter.v1.blockfile", "snapshotter.v1.btrfs", "snapshotter.v1.devmapper", "snapshotter.v1.erofs",
                  "snapshotter.v1.zfs", "snapshotter.v1.overlayfs", "internal.v1.tracing")
        return f"""version = 3
root = "{self.dir}/root"
state = "{self.dir}/state"
temp = "{self.dir}/temp"
disabled_plugins = {json.dumps([f"io.containerd.{name}" for name in others])}
[grpc]
address = "{self.socket}"
[plugins."io.containerd.nri.v1.nri"]
disable = false
socket_path = "{self.nri_socket}"
plugin_path = "{self.plugins}"
plugin_config_path = "{self.plugin_settings}"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "native"
use_local_image_pull = true
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.transfer.v1.local"]
[[plugins."io.containerd.transfer.v1.local".unpack_config]]
platform = "linux"
snapshotter = "native"
"""

    def start(self):
        """Starts it, also again: its pods have stayed."""
        log = open(self.dir / "log", "ab")
        path = f"{BUILT}:{os.environ['PATH']}:/usr/sbin:/sbin"
        self.process = subprocess.Popen(
            [BUILT / "containerd", "--config", self.config], env={"PATH": path}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )
        assert lab_module.wait_until(self.answers, CALL_S), f"containerd does not answer: {self.log()[-4000:]}"

    def answers(self):
        """Whether it serves pods; that it has ended is a failure."""
        assert self.process.poll() is None, f"containerd has ended: {self.log()[-4000:]}"
        return self.socket.exists() and subprocess.run(self.words("crictl", "pods"), capture_output=True, timeout=CALL_S).returncode == 0

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def log(self):
        """What it has said."""
        return (self.dir / "log").read_text(errors="replace")

    def words(self, program, *words):
        """A command line."""
        options = ["--config", self.dir / "crictl.yaml"] if program == "crictl" else []
        return [str(word) for word in (BUILT / program, *options, *words)]

    def call(self, program, *words):
        """Runs one of its commands: what it prints."""
        done = subprocess.run(self.words(program, *words), capture_output=True, text=True, errors="replace", timeout=CALL_S, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{program} {words}: {done.stderr[-2000:]}\n{self.log()[-2000:]}"
        return done.stdout.strip()

    def crictl(self, *words):
        """`crictl WORDS`."""
        return self.call("crictl", *words)

    def end(self):
        """Ends all pods, it and its shims, and removes what is outside of its folder."""
        if self.process and self.process.poll() is None:
            for pod in subprocess.run(self.words("crictl", "pods", "-q"), capture_output=True, text=True, timeout=CALL_S).stdout.split():
                subprocess.run(self.words("crictl", "rmp", "--force", pod), capture_output=True, timeout=CALL_S)
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        for mount in lab_module.mounts("cgroup2"):
            for cgroup in [path for path in (mount / self.parent[1:]).rglob("*") if path.is_dir()]:
                lab_module.end_cgroup(cgroup)
        self.end_shims()
        for mount in lab_module.mounts("cgroup", "cgroup2"):
            lab_module.wait_until(lambda tree=mount / self.parent[1:]: lab_module.remove_cgroups(tree), 10)
        points = [Path(line.split(" ")[1]) for line in Path("/proc/self/mounts").read_text().splitlines()]
        for point in sorted((point for point in points if self.dir in point.parents), reverse=True):
            subprocess.run(["umount", "-l", point], check=False)
        if not self.had_run:
            remove_sockets(Path("/run/containerd/s"))
            lab_module.remove_cgroups("/run/containerd")

    def end_shims(self):
        """A shim survives its containerd; each names the socket of ours. Waits until none is left."""
        def ended():
            left = [int(process.name) for process in Path("/proc").glob("[0-9]*") if self.is_shim(process)]
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not left
        lab_module.wait_until(ended)

    def is_shim(self, process):
        """Whether a folder of /proc is that of a shim of ours."""
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:  # It has ended meanwhile.
            return False
        return b"containerd-shim" in words and str(self.socket).encode() in words


def remove_sockets(folder):
    """Those of shims that were killed; one on which somebody listens stays, and so does its folder."""
    for path in folder.glob("*"):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def as_in_kubernetes(container, folders):
    """A container of a manifest as the kubelet asks for it, with these folders in the place of its volumes."""
    asked = container["securityContext"]
    context = {
        "run_as_user": {"value": asked["runAsUser"]}, "run_as_group": {"value": asked["runAsGroup"]}, "privileged": asked["privileged"],
        "readonly_rootfs": asked["readOnlyRootFilesystem"], "no_new_privs": not asked["allowPrivilegeEscalation"],
        "capabilities": {"drop_capabilities": asked["capabilities"]["drop"]},
        "seccomp": {"profile_type": ["RuntimeDefault"].index(asked["seccompProfile"]["type"])},
    }
    volumes = [{"container_path": mount["mountPath"], "host_path": str(folders[mount["name"]]), "readonly": mount["readOnly"]}
               for mount in container["volumeMounts"]]
    # The image has no C library, and the program is not in it.
    program = {"container_path": "/bin/cosched-nri", "host_path": str(lab_module.bin_dir() / "cosched-nri"), "readonly": True}
    library = [{"container_path": path, "host_path": path, "readonly": True} for path in ("/lib", "/lib64", "/usr/lib") if Path(path).exists()]
    return {"command": container["command"], "mounts": [*volumes, program, *library], "linux": {"security_context": context}}


class Pod:
    """A pod as a kubelet has it made: with a cgroup of its own, named by its uid."""

    def __init__(self, containerd, name, annotations, parent=None, namespace="default"):
        self.containerd, self.name, self.containers = containerd, name, []
        self.uid = f"0f3c-{name}-{os.getpid()}"
        self.path = parent or f"{containerd.parent}/pod{self.uid}"
        self.cgroup = lab_module.mounts("cgroup2")[0] / self.path[1:]
        self.sandbox = {
            "metadata": {"name": name, "uid": self.uid, "namespace": namespace, "attempt": 0}, "annotations": annotations,
            "log_directory": str(containerd.dir / "logs"),
            "linux": {"cgroup_parent": self.path, "security_context": {"namespace_options": {"network": 2}}},
        }
        self.file = self.write("pod", self.sandbox)
        self.id = containerd.crictl("runp", self.file)

    def write(self, kind, data):
        """A file for crictl."""
        file = self.containerd.dir / f"{self.uid}-{kind}.json"
        file.write_text(json.dumps(data))
        return file

    def start(self, name, script="while :; do :; done", **more):
        """Starts a container in it: its id."""
        config = {"metadata": {"name": name, "attempt": 0}, "image": {"image": IMAGE}, "command": ["/bin/sh", "-c", script], "linux": {}, **more}
        container = self.containerd.crictl("create", "--no-pull", self.id, self.write(name, config), self.file)
        self.containerd.crictl("start", container)
        return container

    def is_frozen(self):
        """Whether its cgroup is frozen now, and so all of its containers."""
        return (self.cgroup / "cgroup.freeze").read_text().strip() == "1"

    def is_switched(self):
        """Whether it is frozen and thawed by turns."""
        def becomes(frozen):
            return lab_module.wait_until(lambda: self.is_frozen() == frozen)
        return becomes(True) and becomes(False) and becomes(True)

    def cpu_ticks(self):
        """The CPU time of its processes."""
        pids = [int(pid) for file in self.cgroup.rglob("cgroup.procs") for pid in file.read_text().split()]
        return sum(ticks(pid) for pid in pids)

    def runs(self):
        """Whether it computes, and is not frozen in a time that is longer than some slots."""
        def computes():
            before, end = self.cpu_ticks(), time.monotonic() + 1
            while time.monotonic() < end:
                if self.is_frozen():
                    return False
                time.sleep(0.01)
            return self.cpu_ticks() > before
        return lab_module.wait_until(computes)


def ticks(pid):
    """The ticks of CPU time that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # It has ended.
        return 0
    return int(fields[11]) + int(fields[12])

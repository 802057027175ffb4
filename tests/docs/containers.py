"""The commands of docs/containers.md as they stand, by podman, with an image made of this machine's files."""

import os
import re
import shutil
import subprocess

from lab import LIMIT_S, ROOT, Lab, blocks

IMAGE = "localhost/cosched-docs:1"
# Files of the image: programs by their names in it.
PROGRAMS = {"sh": "/bin/bash"}
# What the commands run is installed there.
BARRIER = ROOT / "build/programs/barrier-threads"


def missing():
    return [name for name in ("podman", "runc", "tar") if not shutil.which(name)] + [str(path) for path in (*PROGRAMS.values(), BARRIER) if not os.path.exists(path)]


def settings(folder):
    """A store of this test's own. vfs: without mounts that could be left. runc: crun refuses the hybrid layout."""
    (folder / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n')
    (folder / "containers.conf").write_text(
        '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\nnetns = "none"\n[engine]\nruntime = "runc"\n'
        f'cgroup_manager = "cgroupfs"\nevents_logger = "none"\nlock_type = "file"\ntmp_dir = "{folder}/tmp"\n'
    )
    return {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "CONTAINERS_CONF": str(folder / "containers.conf")}


def make_image(folder, environment, installed):
    """Programs, and the libraries that they and what is installed need; nothing is read from the network."""
    root = folder / "root"
    needed = subprocess.run(["ldd", *PROGRAMS.values(), BARRIER, *installed], check=True, capture_output=True, text=True).stdout
    libraries = {path: path for path in re.findall(r"(/\S+) \(0x", needed)}
    for target, source in {**libraries, **{f"/bin/{name}": path for name, path in PROGRAMS.items()}}.items():
        os.makedirs(root / os.path.dirname(target).lstrip("/"), exist_ok=True)
        shutil.copy(source, root / target.lstrip("/"))
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    subprocess.run(["tar", "-C", root, "-cf", folder / "image.tar", "."], check=True)
    return subprocess.run(["podman", "import", "-q", folder / "image.tar", IMAGE], env=environment, capture_output=True, text=True)


def remove_containers(environment):
    subprocess.run(["podman", "rm", "--all", "--force", "--time", "0"], env=environment, capture_output=True)
    # The folders above the containers' cgroups, when no other podman has some there.
    with open("/proc/self/mounts") as mounts:
        places = [line.split()[1] for line in mounts if " cgroup" in line]
    for place in places:
        for name in ("libpod_parent/conmon", "libpod_parent"):
            try:
                os.rmdir(os.path.join(place, name))
            except OSError:
                pass


def check():
    """(passed, failed)"""
    if absent := missing():
        print(f"SKIPPED: docs/containers.md: not installed or built: {', '.join(absent)}: `tools/setup test` and `make programs`")
        return 0, 0
    lab = Lab(installed=True, daemon=False)
    environment = lab.environment | settings(lab.folder) | {"IMAGE": IMAGE, "COSCHED": str(lab.prefix)}
    try:
        made = make_image(lab.folder, environment, lab.bin.iterdir())
        tried = subprocess.run(["podman", "run", "--rm", IMAGE, "sh", "-c", ":"], env=environment, capture_output=True, text=True)
        if tried.returncode:
            print(f"SKIPPED: docs/containers.md: podman runs no container here: {made.stderr}{tried.stderr}")
            return 0, 0
        page = (ROOT / "docs/containers.md").read_text()
        promised = blocks(page, "text")
        for name, code in blocks(page).items():
            said = lab.check(f"containers: {name}", ["bash", "-euo", "pipefail", "-c", code], LIMIT_S, env=environment)
            if absent := [line for line in promised[name].splitlines() if line not in said]:
                lab.failed += 1
                print(f"FAILED: containers: {name}: {absent} is not in what was printed:\n{said}")
    finally:
        remove_containers(environment)
        lab.end()
    return lab.passed, lab.failed

"""A disk of one rate: the kernel's limit on bytes per second to and from a device (blkio, cgroup v1)."""

import os
import pathlib

GROUP = pathlib.Path("/sys/fs/cgroup/blkio/cosched-roysden")


class Throttle:
    """Limits who enters it to so many bytes per second of reading, and as many of writing, on the disk of `directory`.

    `why_not` says why there is no limit; None if there is one."""

    def __init__(self, directory, bytes_per_s):
        self.why_not = None
        if not bytes_per_s:
            self.why_not = "not asked for"
            return
        try:
            GROUP.mkdir(exist_ok=True)
            for name in ("read", "write"):
                (GROUP / f"blkio.throttle.{name}_bps_device").write_text(f"{disk(directory)} {bytes_per_s}")
        except OSError as error:
            self.why_not = f"{error.filename or GROUP}: {error.strerror}"

    def enter(self):
        """The calling process and its children are limited from now on."""
        if not self.why_not:
            (GROUP / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        if GROUP.exists():
            GROUP.rmdir()


def disk(directory):
    """MAJOR:MINOR of the whole disk that holds a directory."""
    device = os.stat(directory).st_dev
    path = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    whole = path.parent if (path / "partition").exists() else path
    return (whole / "dev").read_text().strip()

"""Nobody reads the daemon's standard error: a pipe that is full, as of a container whose log is not collected. The daemon waited in its write, answered
nobody, and its guard killed it after a minute.

Must hold: it answers; what finds no room is left out of the log.
"""

import fcntl
import os

F_SETPIPE_SZ = 1031


def attack(lab):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 8192)
    lab.daemon('policy = "local"\n', log=writer)
    os.close(writer)
    for _ in range(100):
        assert lab.a.cosched("run", "true", timeout_s=20).returncode == 0, "the daemon waits for whoever reads its log"
    said = os.read(reader, 1 << 20)
    assert 4096 <= len(said) <= 8192, f"{len(said)} bytes: the pipe was not full"
    os.close(reader)
    assert lab.answers(), "nor when the pipe is closed"

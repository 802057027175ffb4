"""Starts a daemon and kills it, or its guard, with SIGKILL at the entry of a system call, by ptrace(2)."""

import ctypes
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
TRACEME, CONT, DETACH, SYSCALL, SETOPTIONS = 0, 7, 17, 24, 0x4200
OPTIONS = 0x01 | 0x02 | 0x04 | 0x08 | 0x10  # TRACESYSGOOD, and the events of fork, vfork, clone, exec
EVENT_EXEC = 4
SYSCALL_STOP = signal.SIGTRAP | 0x80
WALL = 0x40000000


def ptrace(request, pid, data=0):
    """Whether the request succeeded: a task that was killed meanwhile cannot be controlled."""
    return LIBC.ptrace(request, pid, None, data) == 0


class Tracer:
    """`of`: whose calls are counted: `driver` (the daemon's first thread), `daemon` (all its threads) or `guard`."""

    def __init__(self, argv, env, log, of, at):
        self.of, self.at, self.count = of, at, 0
        self.inside, self.groups, self.fresh, self.guards = set(), {}, set(), set()
        self.main = os.fork()
        if self.main == 0:
            try:
                for fd in (1, 2):
                    os.dup2(log, fd)
                ptrace(TRACEME, 0)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.execve(argv[0], argv, env)
            finally:
                os._exit(127)
        os.waitpid(self.main, WALL)
        ptrace(SETOPTIONS, self.main, OPTIONS)
        self.groups[self.main] = self.main
        self.go_on(self.main, 0)

    def run(self):
        """Runs until the daemon has ended and no process is traced any more: the calls that were counted."""
        while True:
            try:
                tid, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                return self.count
            if os.WIFSTOPPED(status):
                self.stopped(tid, os.WSTOPSIG(status), status >> 16)
            else:
                self.inside.discard(tid)
                self.groups.pop(tid, None)

    def stopped(self, tid, sig, event):
        if tid not in self.groups:
            # A new task stops once by itself.
            self.groups[tid] = group_of(tid)
            self.fresh.add(tid)
        if sig == SYSCALL_STOP:
            self.call(tid)
        elif event == EVENT_EXEC and self.groups[tid] != self.main and not self.is_counted(tid):
            self.groups.pop(tid)
            ptrace(DETACH, tid)
            return
        elif event == EVENT_EXEC:
            self.inside.add(tid)
        elif sig == signal.SIGSTOP and tid in self.fresh:
            self.fresh.discard(tid)
        elif not event:
            return self.go_on(tid, sig)
        self.go_on(tid, 0)

    def call(self, tid):
        if tid in self.inside:
            return self.inside.discard(tid)
        self.inside.add(tid)
        self.count += 1
        if self.count == self.at:
            os.kill(self.groups[tid], signal.SIGKILL)

    def is_counted(self, tid):
        if self.of == "guard":
            return self.groups[tid] != self.main and self.is_guard(self.groups[tid])
        return tid == self.main or self.of == "daemon" and self.groups[tid] == self.main

    def is_guard(self, pid):
        if pid not in self.guards:
            words = words_of(pid)
            if words[1:2] != [b"watch"]:
                # It may become one, by exec.
                return False
            self.guards.add(pid)
        return True

    def go_on(self, tid, sig):
        ptrace(SYSCALL if self.is_counted(tid) else CONT, tid, sig)


def group_of(tid):
    """The process of a thread."""
    try:
        with open(f"/proc/{tid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Tgid:"))
    except (OSError, StopIteration):
        return tid


def words_of(pid):
    """The command line of a process."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            return words.read().split(b"\0")
    except OSError:
        return []


def spawn(argv, env, log, of, at):
    """A process that traces a daemon: its number, and the pipe into which it writes the daemon's number, then the count."""
    out, into = os.pipe()
    pid = os.fork()
    if pid:
        os.close(into)
        return pid, os.fdopen(out)
    try:
        os.close(out)
        tracer = Tracer(argv, env, log, of, at)
        os.write(into, f"{tracer.main}\n".encode())
        os.write(into, f"{tracer.run()}\n".encode())
    finally:
        os._exit(0)

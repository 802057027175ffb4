"""tools/bench/hosts: two hosts are created, are entered without a change of cgroups, and disappear, however their creator ends."""

import pathlib
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))
import hosts  # noqa: E402
from live import Failure  # noqa: E402


def why_not():
    """Why no hosts can be created here, or None."""
    try:
        with hosts.Hosts():
            return None
    except Failure as failure:
        return str(failure)


def output(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


class Refused(unittest.TestCase):
    def test_not_root(self):
        with mock.patch("os.geteuid", return_value=1000), self.assertRaisesRegex(Failure, "run as root"):
            hosts.Hosts().__enter__()

    def test_a_tool_is_missing(self):
        with mock.patch("os.geteuid", return_value=0), mock.patch("shutil.which", return_value=None):
            with self.assertRaisesRegex(Failure, "two hosts need ip, nsenter"):
                hosts.Hosts().__enter__()


@unittest.skipIf(why_not(), why_not())
class TwoHosts(unittest.TestCase):
    def test_each_has_its_address_name_and_cpu_and_the_callers_cgroups(self):
        with hosts.Hosts() as two:
            cpus = set()
            for number, address in enumerate(hosts.ADDRESSES):
                agent = [str(two.dir / "agent"), "-x", address]
                self.assertIn(f"{address}/24", output([*agent, "ip", "-brief", "address"]))
                self.assertEqual(output([*agent, "hostname"]).strip(), f"cst-host{number + 1}")
                self.assertEqual(output([*agent, "cat", "/proc/self/cgroup"]),
                                 pathlib.Path("/proc/self/cgroup").read_text())
                cpus.add(output([*agent, "taskset -pc $$"]).split(":")[1].strip())
                self.assertEqual(output([*agent, f"cat /sys/class/net/{hosts.DEVICE}/operstate"]), "up\n")
                self.assertEqual(output([*agent, f"ls /sys/class/net/{hosts.DEVICE}/queues | wc -l"]).strip(), "2")
            self.assertEqual(cpus, {str(cpu) for cpu in two.cpus[:2]})

    def test_messages_pass(self):
        with hosts.Hosts(rate="1gbit") as two:
            enter = str(two.dir / "enter")
            take = "import socket; s = socket.create_server(('10.77.0.2', 5000)); print('on', flush=True); " \
                   "print(s.accept()[0].recv(9))"
            server = subprocess.Popen([enter, hosts.ADDRESSES[1], "python3", "-c", take], stdout=subprocess.PIPE,
                                      text=True)
            self.assertEqual(server.stdout.readline(), "on\n")
            output([enter, hosts.ADDRESSES[0], "python3", "-c",
                    "import socket; socket.create_connection(('10.77.0.2', 5000), 10).send(b'message')"])
            self.assertEqual(server.communicate(timeout=20)[0], "b'message'\n")

    def test_what_still_runs_is_ended_with_them(self):
        with hosts.Hosts() as two:
            left = subprocess.Popen([str(two.dir / "enter"), hosts.ADDRESSES[1], "setsid", "sleep", "1000"])
            while not two.processes():
                time.sleep(0.01)
            directory = two.dir
        self.assertEqual(left.wait(10), -signal.SIGKILL)
        self.assertFalse(directory.exists())

    def test_nothing_is_left_when_their_maker_is_killed(self):
        code = ("import sys, time; sys.path.insert(0, sys.argv[1]); import hosts\n"
                "with hosts.Hosts() as two: print(*[a.pid for a in two.anchors], two.dir, flush=True); time.sleep(1000)")
        maker = subprocess.Popen([sys.executable, "-c", code, str(BENCH)], stdout=subprocess.PIPE, text=True)
        *anchors, directory = maker.stdout.readline().split()
        maker.kill()
        maker.communicate()
        end = time.monotonic() + 10
        while any(hosts.namespace(int(pid)) for pid in anchors) and time.monotonic() < end:
            time.sleep(0.02)
        # Not their /proc entry: the process that inherits them may be slow to reap them.
        self.assertEqual([pid for pid in anchors if hosts.namespace(int(pid))], [])
        subprocess.run(["rm", "-r", directory], check=True)


if __name__ == "__main__":
    unittest.main()

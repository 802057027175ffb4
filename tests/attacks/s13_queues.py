"""Finding 13: one user keeps the others out within the rules: with declared memory, with a large waiting job, with an exclusive queue.

Must hold: a job that fits starts, whichever jobs wait for more; with limits per user and permissions on queues no unauthorised user has all
the memory, or the machine alone. The limits can be changed while the daemon runs.
"""

from lab import wait_until

QUEUES = """
[[queue]]
name = "night"
exclusive = true
users = ["root"]
[[queue]]
name = "day"
memory_max_per_user = "300M"
jobs_max_per_user = %d
"""


def attack(lab):
    def run(user, *args):
        """`cosched run -d ARGS -- sleep`: the job's number, or the error message."""
        ran = user.cosched("run", "-d", *args, "--", "sleep", "600")
        return int(ran.stdout) if ran.returncode == 0 else ran.stderr

    def is_in(job, state):
        assert isinstance(job, int), job
        assert wait_until(lambda: lab.job(job)["state"] == state), f"not {state}: {lab.job(job)}"

    lab.daemon('memory = "400M"\n' + QUEUES % 3)
    # A request above the user's limit is refused; a job that would exceed it waits, and B has room.
    refused = run(lab.a, "--mem", "400M")
    assert "to each user" in str(refused), f"a hog of all the memory: {refused}"
    is_in(run(lab.a, "--mem", "300M"), "running")
    is_in(run(lab.a, "--mem", "300M"), "waiting")
    is_in(run(lab.b, "--mem", "100M"), "running")
    # Jobs without declared memory are limited by their number.
    is_in(run(lab.a), "running")
    is_in(run(lab.a), "running")
    beyond = run(lab.a)
    is_in(beyond, "waiting")
    assert "the queue's limit for a user" in lab.job(beyond)["waits_for"], lab.job(beyond)
    # A large job of B's that waits for A's holds back no job that fits.
    large = run(lab.b, "--mem", "200M")
    is_in(large, "waiting")
    is_in(run(lab.b), "running")
    is_in(large, "waiting")
    # A may not use the exclusive queue, and does not get it by naming none, either.
    refused = run(lab.a, "--queue", "night")
    assert "for other users" in str(refused) and "day" in str(refused), f"the machine is A's alone: {refused}"
    # An administrator changes the limits of a running machine, and `cosched queues` shows them.
    file = lab.dir / "queues.toml"
    file.write_text(QUEUES % 4)
    changed = lab.root.cosched("queues", "set", str(file))
    assert changed.returncode == 0, changed.stderr
    is_in(beyond, "running")
    shown = lab.b.cosched("queues").stdout
    assert "300" in shown and "root" in shown, shown

"""Finding 13: one user keeps the others out by the rules: with declared memory, with a large job that waits, with an exclusive queue.

Must hold: a job that fits starts, whoever waits for more; with limits per user and rights on queues nobody has all the memory, or the
machine for himself, who may not. The limits can be changed while the daemon runs.
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
        """`cosched run -d ARGS -- sleep`: its number, or what was said."""
        ran = user.cosched("run", "-d", *args, "--", "sleep", "600")
        return int(ran.stdout) if ran.returncode == 0 else ran.stderr

    def is_in(job, state):
        assert isinstance(job, int), job
        assert wait_until(lambda: lab.job(job)["state"] == state), f"not {state}: {lab.job(job)}"

    lab.daemon('memory = "400M"\n' + QUEUES % 3)
    # More than one user may have is refused; what is beyond it waits, and B has room.
    refused = run(lab.a, "--mem", "400M")
    assert "to each user" in str(refused), f"a hog of all the memory: {refused}"
    is_in(run(lab.a, "--mem", "300M"), "running")
    is_in(run(lab.a, "--mem", "300M"), "waiting")
    is_in(run(lab.b, "--mem", "100M"), "running")
    # Jobs without memory are limited by their number.
    is_in(run(lab.a), "running")
    is_in(run(lab.a), "running")
    beyond = run(lab.a)
    is_in(beyond, "waiting")
    assert "as that permits to a user" in lab.job(beyond)["waits_for"], lab.job(beyond)
    # A large job of B's that waits for A's holds nobody back who fits.
    large = run(lab.b, "--mem", "200M")
    is_in(large, "waiting")
    is_in(run(lab.b), "running")
    is_in(large, "waiting")
    # The exclusive queue is not for A, who does not get it without naming one either.
    refused = run(lab.a, "--queue", "night")
    assert "for other users" in str(refused) and "day" in str(refused), f"the machine is A's alone: {refused}"
    # An administrator changes the limits of a machine that runs, and `cosched queues` shows them.
    file = lab.dir / "queues.toml"
    file.write_text(QUEUES % 4)
    changed = lab.root.cosched("queues", "set", str(file))
    assert changed.returncode == 0, changed.stderr
    is_in(beyond, "running")
    shown = lab.b.cosched("queues").stdout
    assert "300" in shown and "root" in shown, shown

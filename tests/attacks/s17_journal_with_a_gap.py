"""The journal is cut at a line, loses one, has one twice or two swapped, or is missing: it is reported, no number is given twice, and processes
that no journal entry accounts for are named with what to do about them."""

from lab import wait_until

QUEUES = '[[queue]]\nname = "main"\n'


def attack(lab):
    lab.daemon(QUEUES)
    cut(lab)
    for change in (without_one, one_twice, two_swapped):
        lab.kill()
        lines = (lab.state / "journal").read_bytes().splitlines(keepends=True)
        (lab.state / "journal").write_bytes(b"".join(change(lines)))
        lab.daemon(QUEUES)
        assert warning(lab, "lines of the state"), f"{change.__name__}: nothing is said: {lab.json('status')['warnings']}"
        lab.restart()
        assert not warning(lab, "lines of the state"), f"{change.__name__}: it is said for ever"
    orphan(lab)


def cut(lab):
    """Cut at a line: the last job is forgotten, its number is not."""
    lab.kill()
    whole = (lab.state / "journal").read_bytes()
    lab.daemon(QUEUES)
    last = lab.a.detach("--", "true")
    assert wait_until(lambda: lab.job(last)["state"] == "ended")
    lab.kill()
    lines = whole.splitlines(keepends=True)
    (lab.state / "journal").write_bytes(b"".join(lines[:-1]))
    lab.daemon(QUEUES)
    assert warning(lab, "lines of the state"), f"nothing is said: {lab.json('status')['warnings']}"
    again = lab.a.detach("--", "true")
    assert again > last, f"the number {again} was given again (before: {last})"


def without_one(lines):
    return lines[:1] + lines[2:]


def one_twice(lines):
    return [*lines, lines[1]]


def two_swapped(lines):
    return [lines[0], lines[2], lines[1], *lines[3:]]


def orphan(lab):
    """A running job whose records are lost."""
    job = lab.a.detach("--", "sleep", "1000")
    lab.kill()
    (lab.state / "journal").unlink()
    lab.daemon(QUEUES)
    said = warning(lab, "no job")
    assert said and str(job) in said["what"] and "cgroup.kill" in said["hint"], lab.json("status")["warnings"]
    assert lab.a.detach("--", "true") > job
    (lab.v2_job(job) / "cgroup.kill").write_text("1")
    assert wait_until(lambda: not warning(lab, "no job")), "it is said for ever"
    assert not lab.v2_job(job).exists()


def warning(lab, what):
    return next((w for w in lab.json("status")["warnings"] if what in w["what"]), None)

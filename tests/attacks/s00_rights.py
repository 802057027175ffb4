"""B controls, ends, re-classes and reads A's job; A raises their own class. What was refused before must still be refused."""


def attack(lab):
    lab.daemon('policy = "local"\n')
    job = str(lab.a.detach("--", "sleep", "1000"))
    for words in (["kill", job], ["suspend", job], ["resume", job], ["class", job, "standby"], ["policy", "gang"], ["class", job, "express"]):
        done = lab.b.cosched(*words)
        assert done.returncode not in (0, None), f"B: cosched {words} was done: {done.stdout}"
    raised = lab.a.cosched("class", job, "express")
    assert raised.returncode != 0, "A made himself express"
    for pid in lab.pids(job):
        seen = lab.b.sh(f"cat /proc/{pid}/environ")
        assert seen.returncode != 0, "B read the environment of A's process"
    assert lab.job(job)["state"] == "running", lab.job(job)
    assert lab.a.cosched("kill", job).returncode == 0, "A may end his own job"

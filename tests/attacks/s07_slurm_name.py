"""A Slurm job's name looks like squeue's line of a QOS, and a user registers the name of the next Slurm job in advance.

What must hold: the prolog, root's, registers the job in the class of its real QOS, whatever lines are in its name; and a job that the
user has registered under the name `slurm-19` is not taken for the prolog's.
"""

WIDTHS = (16, 48, 128, 512, 4096)
# The output of squeue 22.05: a name with a newline is printed as it is, and each task of an array has a line.
SQUEUE = """#!/usr/bin/python3
import sys
columns = next(word for word in sys.argv if word.startswith("--Format=")).split("=")[1].split(",")
values = {"JobID": "19", "JobArrayID": "19_7", "QOS": "normal", "tres-alloc": "cpu=1,node=1", "NodeList": "n1", "Name": "x\\n" + FORGED}
for job in ("18", "19"):
    values["JobID"] = job
    print("".join(values[name].ljust(int(width)) for name, width in (column.split(":") for column in columns)))
"""
SETTINGS = """class = "standby"
[qos]
urgent = "express"
normal = "batch"
"""


def attack(lab):
    lab.daemon()
    folder = lab.dir / "slurm"
    folder.mkdir()
    forged = "".join(text.ljust(width) for text, width in zip(("19", "19_7", "urgent", "cpu=1", "n1"), WIDTHS))
    (folder / "squeue").write_text(SQUEUE.replace("FORGED", repr(forged)))
    (folder / "squeue").chmod(0o755)
    (folder / "settings.toml").write_text(SETTINGS)
    source = (
        "import json, os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['COSCHED_SOCKET'])\n"
        "body = json.dumps({'command': ['mine'], 'name': 'slurm-19', 'class': 'interactive', 'pid': 0, 'once': True, 'policy': 'local'})\n"
        "s.sendall(f'POST /v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\n'\n"
        "    f'Content-Length: {len(body)}\\r\\nConnection: close\\r\\n\\r\\n{body}'.encode())\n"
        "print(s.recv(65536).decode())"
    )
    said = lab.a.run(["/usr/bin/python3", "-c", source]).stdout
    assert " 201 " in said or " 200 " in said, said
    env = {
        "PATH": f"{folder}:/usr/bin:/bin", "SLURM_JOB_ID": "19", "SLURM_JOB_UID": str(lab.a.uid), "SLURMD_NODENAME": "n1",
        "SLURM_JOB_PARTITION": "main",
    }
    words = [lab.bin / "cosched", "--socket", lab.socket, "slurm", "--settings", folder / "settings.toml", "prolog"]
    for _ in range(2):
        done = lab.root.run(words, env=env)
        assert done.returncode == 0, f"{done.returncode} {done.stderr}"
    jobs = [job for job in lab.json("ps")["jobs"] if job["name"] == "slurm-19"]
    of_root = [(job["class"], job.get("own_policy")) for job in jobs if job.get("by_admin")]
    assert of_root == [("batch", None)], f"the prolog's job, once, in the class of its QOS: {jobs}"
    assert len(jobs) == 2, f"the user's own job is another one: {jobs}"

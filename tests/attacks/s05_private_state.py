"""A's environment, with a password in it, is in the daemon's files: B must not be able to read any of them, whatever root's umask is."""

import os

SECRET = "of-a-61531-only"


def attack(lab):
    old = os.umask(0)
    lab.at_end(lambda: os.umask(old))
    # As earlier versions left them.
    lab.state.mkdir(mode=0o755)
    for name in ("keys.old", "journal.corrupt-1"):
        (lab.state / name).write_text(SECRET)
        (lab.state / name).chmod(0o644)
    config = '[[queue]]\nname = "main"\n'
    lab.daemon(config)
    job = lab.a.run([lab.bin / "cosched", "run", "--detach", "--queue", "main", "--on-node-loss", "requeue", "--", "sleep", "1000"], env={"AWS_SECRET_ACCESS_KEY": SECRET})
    assert job.returncode == 0, job.stderr
    # Damaged, so that it is moved aside and rewritten.
    lab.kill()
    with open(lab.state / "journal", "ab") as journal:
        journal.write(b"damage\n")
    lab.daemon(config)
    files = list(lab.state.iterdir())
    assert any(SECRET in file.read_text(errors="replace") for file in files if file.name == "journal"), "the secret is in no file: nothing was shown"
    modes = {file.name: oct(file.stat().st_mode & 0o7777) for file in [lab.state, *files]}
    assert all(mode == ("0o700" if name == "state" else "0o600") for name, mode in modes.items()), modes
    found = lab.b.sh(f"grep -rl {SECRET} {lab.dir} 2>/dev/null")
    assert not found.stdout, f"B reads the secret in {found.stdout}"

"""A gives jobs names, commands and directories with escape codes and line breaks. None of them may reach a terminal raw, in any
command's output or errors, and no line of a table may be forged. The same for the output of A's job on root's terminal."""

import os
import pty
import re
import select
import subprocess

EVIL = "\x1b[2J\x1b]0;owned\x07\n999999  forged  root  \u202e\u009b31m"
# The only escape codes that cosched itself writes: colours.
OURS = re.compile(r"\x1b\[[0-9;]*m")


def attack(lab):
    lab.daemon('policy = "local"\n')
    evil_dir = lab.a.home / ("d" + EVIL.replace("/", ""))
    evil_dir.mkdir()
    os.chown(evil_dir, lab.a.uid, lab.a.uid)
    done = lab.a.run([lab.bin / "cosched", "run", "-d", "--name", "n" + EVIL, "--", "sh", "-c", "printf '\\033[2J\\033]0;owned\\007'; sleep 1000 # " + EVIL], cwd=evil_dir)
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    lab.a.cosched("kill", "-s", "CONT", job)
    commands = [
        ["ps"], ["ps", "--all"], ["show", job], ["show", "n" + EVIL], ["log", "--events", job], ["log", job], ["nodes"], ["status"],
        ["show", "n" + EVIL + "x"], ["kill", "no" + EVIL], ["top", "--once"], ["queues"], ["suspend", "n" + EVIL + "y"],
    ]
    for words in commands:
        text = on_terminal(lab, words)
        bare = OURS.sub("", text.replace("\r\n", "\n"))
        bad = [c for c in bare if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c == "\u202e"]
        assert not bad, f"cosched {words}: {bad} in {text!r}"
        assert not re.search(r"^\s*999999 ", bare, re.M), f"cosched {words}: a forged line in {text!r}"
    # The same when the output is written to a file or a pager.
    for words in (["ps"], ["show", job], ["log", "--events", job], ["kill", "no" + EVIL]):
        done = lab.b.cosched(*words)
        assert "\x1b" not in done.stdout + done.stderr, f"cosched {words}: {done}"
    assert "\x1b[2J" in lab.a.cosched("log", job).stdout, "his own output, as it is"


def on_terminal(lab, words):
    """The output of `cosched WORDS` on root's terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, **lab.environment(), "TERM": "xterm"}
    process = subprocess.Popen([str(lab.bin / "cosched"), *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    data = b""
    try:
        while select.select([ours], [], [], 20)[0]:
            piece = os.read(ours, 65536)
            if not piece:
                break
            data += piece
    except OSError:
        pass
    os.close(ours)
    process.wait(20)
    assert data, f"cosched {words} said nothing"
    return data.decode(errors="surrogateescape")

r"""Runs a command at a terminal, and types when it shows something: terminal.py SHOWS KEYS COMMAND

The command is the shell's. SHOWS is a regular expression for what has to be on the screen before KEYS are typed, in which \x03 is Ctrl-C. Prints
what was on the screen. Exit code: the command's, 128 + N for signal N; 0 when it is Ctrl-C that has ended it.
"""

import os
import pty
import re
import signal
import sys

shows, keys, command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm-256color"
    os.execvp("bash", ["bash", "-c", f"stty rows 24 cols 80; {command}"])
screen, typed = b"", False
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:  # its end
        break
    screen += piece
    if not typed and re.search(shows.encode(), screen):
        os.write(terminal, keys.encode().decode("unicode_escape").encode())
        typed = True
sys.stdout.buffer.write(screen)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if typed and code == -signal.SIGINT:
    code = 0
sys.exit(code if code >= 0 else 128 - code)

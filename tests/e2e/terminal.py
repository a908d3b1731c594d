"""terminal.py LOCKSTEP top RUN: what `lockstep top` does to a terminal.

It draws the nodes, cut to the size of the terminal; however it ends, by q,
Ctrl-C or a signal, the terminal is as it was.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios

LEAVE = b"\033[?25h\033[?1049l"


def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read_until(fd, text, seen=b""):
    """Read until text has come; return all of it."""
    while text not in seen:
        if not select.select([fd], [], [], 60)[0]:
            sys.exit(f"never {text!r} in {seen[-2000:]!r}")
        seen += os.read(fd, 65536)
    return seen


def begin(command, theirs, kind):
    """Start it on a terminal of that kind."""
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(theirs, fd)
        os.environ["TERM"] = kind
        os.execv(command[0], [*command, "--every", "0.2"])
    return child


def visit(command, end, code):
    """Start it, end it with a key or a signal, and look at the terminal."""
    ours, theirs = pty.openpty()
    size(theirs, 24, 100)
    before = termios.tcgetattr(theirs)
    child = begin(command, theirs, "xterm")
    seen = read_until(ours, b"q ends this")
    assert b"\033[?1049h" in seen and b"evaluator" in seen, seen
    assert termios.tcgetattr(theirs) != before
    size(theirs, 3, 10)
    while True:  # the first frame of the new size
        frame = read_until(ours, b"\033[J")
        drawn = frame[frame.rfind(b"\033[H") + 3:]
        lines = re.sub(rb"\033\[[KJ]", b"", drawn).split(b"\r\n")
        if len(lines) <= 3 and all(len(line) <= 10 for line in lines):
            break
    if isinstance(end, bytes):
        os.write(ours, end)
    else:
        os.kill(child, end)
    read_until(ours, LEAVE)
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == code, (end, status)
    assert termios.tcgetattr(theirs) == before, end
    os.close(ours)
    os.close(theirs)


def is_refused(command):
    """It does not draw where nothing can be drawn."""
    ours, theirs = pty.openpty()
    child = begin(command, theirs, "dumb")
    seen = read_until(ours, b"needs a terminal")
    assert b"\033" not in seen, seen
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    os.close(ours)
    os.close(theirs)


def main():
    is_refused(sys.argv[1:])
    for end, code in ((b"q", 0), (b"\003", 0), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
        visit(sys.argv[1:], end, code)


main()

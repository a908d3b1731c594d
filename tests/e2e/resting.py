#!/usr/bin/env python3
"""resting.py COMMAND...: run it with a short pipe as its stderr, of which nothing
is read before it waits in a write there, or has ended. Prints what came."""
import fcntl
import glob
import os
import shutil
import subprocess
import sys


def waits_in_write(pid):
    for path in glob.glob(f"/proc/{pid}/task/*/syscall"):
        try:
            with open(path) as call:
                if call.read().startswith("1 0x2 "):
                    return True
        except OSError:
            pass  # it has ended
    return False


reader, writer = os.pipe()
fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=writer)
os.close(writer)
while process.poll() is None and not waits_in_write(process.pid):
    os.sched_yield()
with os.fdopen(reader, "rb") as came:
    shutil.copyfileobj(came, sys.stdout.buffer)
sys.exit(process.wait())

"""Importing a part of the product changes nothing of the process that does it: tests and notebooks import it too."""

import subprocess
import sys

PROGRAM = """
import gc, importlib, pkgutil, signal, threading
import replicator
numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
before = [signal.getsignal(number) for number in numbers]
skipped = {"replicator.__main__"}  # runs the command
names = [each.name for each in pkgutil.walk_packages(replicator.__path__, "replicator.")]
for name in sorted(set(names) - skipped):
    importlib.import_module(name)
print(len(names), gc.isenabled(), threading.active_count())
assert gc.isenabled()
assert [signal.getsignal(number) for number in numbers] == before
"""


def test_no_module_changes_the_process_that_imports_it():
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr

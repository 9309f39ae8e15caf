"""A worker that is asked to stop hears it, whichever of its threads the signal reached."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replicator.testing import wait_until

ROOT = Path(__file__).resolve().parents[2]

WAITS = """import signal, threading
from replicator.cli.operation.run import StopRequest
stop = StopRequest()
stop.listen()
SIGNALS = {signal.SIGTERM, signal.SIGINT}
if OTHER:
    # The kernel then gives signals to the other thread, as it may give any.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    def other():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        print('ready', flush=True)
        threading.Event().wait()
    threading.Thread(target=other, daemon=True).start()
else:
    print('ready', flush=True)
stop.wait()
print('asked' if stop.asked else 'woken for nothing', flush=True)
try:
    threading.Event().wait()
except KeyboardInterrupt:
    print('now', flush=True)
"""


def sleeps(pid):
    """Whether the main thread waits in the kernel."""
    stat = Path(f"/proc/{pid}/task/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at threads as Linux tells")
@pytest.mark.parametrize("other", [False, True], ids=["main-thread", "other-thread"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_and_the_second_means_now(tmp_path, other, number):
    said = tmp_path / "said"
    with said.open("w") as output, subprocess.Popen(
        [sys.executable, "-c", WAITS.replace("OTHER", str(other))], stdout=output, cwd=ROOT
    ) as process:  # fmt: skip

        def until(word):
            wait_until(
                lambda: said.read_text().split()[-1:] == [word],
                timeout_seconds=30, describe=lambda: f"{word}, not {said.read_text()!r}",
            )  # fmt: skip

        try:
            until("ready")
            wait_until(lambda: sleeps(process.pid), timeout_seconds=30, describe="the wait")
            process.send_signal(number)
            until("asked")
            if not other:
                process.send_signal(number)
                until("now")
        finally:
            process.kill()

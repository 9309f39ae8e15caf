"""A drill starts where a container starts it: no test kit's extras, no user entry, a read-only root."""

import subprocess
import sys
from pathlib import Path

import pytest

from replicator.cli.main import run_command

ROOT = Path(__file__).parents[3]
EXTRAS = ("trustme", "cryptography", "testcontainers", "pyspark", "pyarrow", "pandas")
TOPOLOGY = str(ROOT / "topologies" / "active-passive.yaml")
DRILL = str(ROOT / "topologies" / "drills" / "switchover.yaml")

AS_IN_THE_WORKER_IMAGE = f"""
import pwd, sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

def nobody(_uid):
    raise KeyError("getpwuid(): uid not found: 54321")

sys.meta_path.insert(0, NotInstalled())
pwd.getpwuid = nobody
from replicator.cli.main import run_command
"""


def in_the_worker_image(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", AS_IN_THE_WORKER_IMAGE + code, *arguments],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_nothing_of_a_drill_on_a_real_link_needs_the_extras_of_the_test_kit():
    done = in_the_worker_image("import replicator.drill.runner")
    assert done.returncode == 0, done.stderr


def test_the_operator_is_named_without_a_user_entry():
    done = in_the_worker_image(
        "from replicator.cli.roles.drill import operator; print(operator())",
    )
    assert done.stdout.startswith("unknown@"), done.stderr


def test_a_directory_that_cannot_be_written_is_refused_before_anything_is_touched(tmp_path, capsys):
    place = tmp_path / "reports"
    place.write_text("a file where the directory would be")
    line = ["drill", "run", DRILL, "-f", TOPOLOGY, "--reports", str(place), "--yes"]
    assert run_command(line) == 2
    assert "reports cannot be written there" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["failover", "network-cut", "switchover", "worker-crash"])
def test_a_shipped_drill_file_is_valid_there(name):
    file = str(ROOT / "topologies" / "drills" / f"{name}.yaml")
    code = "sys.exit(run_command(sys.argv[1:]))"
    done = in_the_worker_image(code, "drill", "validate", file, "-f", TOPOLOGY)
    assert done.returncode == 0, done.stdout + done.stderr

"""`check --wan` measures a long line as long as it is, and stores nothing on the clusters."""

import json
import subprocess
import sys

import pytest
from topology_files import active_passive, write_topology

from replicator.testing import LineQuality, LocalCluster, WanLine, start_all
from replicator.testing.wan.wan_line import unavailable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "there are long lines"),
]


def test_the_lines_to_a_near_and_a_far_cluster_are_distinguished(tmp_path):
    quality = LineQuality(round_trip_seconds=0.1, bytes_per_second=4_000_000.0)
    with WanLine(quality) as line:
        # A broker's own buffers of 100 KB would bound a connection to 1 MB/s at 100 ms.
        kernels = {"socket.receive.buffer.bytes": "-1", "socket.send.buffer.bytes": "-1"}
        east = LocalCluster("east", place=line.place, config=kernels)
        west = LocalCluster("west")  # Kafka's own buffers, but near
        start_all([east, west])
        with east, west:
            file = write_topology(
                tmp_path / "topology.yaml", "shop", [east, west], [active_passive(["orders"])]
            )
            done = subprocess.run(
                [sys.executable, "-m", "replicator", "check", "--wan", "-f", file, "-o", "json"],
                capture_output=True, text=True, check=False, timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            far, near = told["clusters"]
            assert (far["cluster"], near["cluster"]) == ("east", "west")
            assert 100 <= far["roundTripMs"] < 130
            assert near["roundTripMs"] < 20
            assert 2_000_000 < far["bytesPerSecond"] < 4_200_000 < near["bytesPerSecond"]
            assert far["loss"] < 0.02
            assert far["socketBuffers"] == {"sendBytes": -1, "receiveBytes": -1}
            assert near["socketBuffers"] == {"sendBytes": 102400, "receiveBytes": 102400}
            assert far["advice"] == near["advice"] == []
            assert told["flows"][0]["advice"] == "stay"
            assert [
                name for name in east.admin().list_topics(timeout=10).topics if "check" in name
            ] == []

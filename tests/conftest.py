"""Clusters for integration tests: shared ones, and a factory for those a test may break.

Shared clusters are never killed or paused by a test, and only ``proxied`` is ever cut; names from ``unique`` keep tests apart.
"""

import gc
import logging
import re
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from replicator.cli.main import run_command
from replicator.testing import LocalCluster, start_all

# How long an example takes says how busy the machine is, and nothing of what it shows.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("patient")

BROKER_FOLDERS = {"integration", "acceptance", "images", "spark"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        choices=["records", "batches"],
        help="the engine of all links of acceptance tests that name none (default: the product's own choice)",
    )


def pytest_configure() -> None:
    # A shell without job control starts what it puts in the background with Ctrl-C ignored, and so are its children.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    # Clients in cycles would stay open for the whole run, and ask clusters that are gone again and again.
    assert gc.isenabled(), "something that tests import has switched the collection of garbage off"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        if (
            item.path.is_relative_to(root)
            and item.path.relative_to(root).parts[0] in BROKER_FOLDERS
        ):
            item.add_marker(pytest.mark.integration)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """After a test with clusters of its own: its clients that are in cycles would go on asking for them without end."""
    done = yield
    if "clusters" in getattr(item, "fixturenames", ()):
        gc.collect()
    return done


@pytest.fixture(scope="session")
def east_and_west() -> Iterator[tuple[LocalCluster, LocalCluster]]:
    pair = (LocalCluster("east"), LocalCluster("west"))
    start_all(pair)
    yield pair
    for cluster in pair:
        cluster.stop()


@pytest.fixture(scope="session")
def east(east_and_west: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    return east_and_west[0]


@pytest.fixture(scope="session")
def west(east_and_west: tuple[LocalCluster, LocalCluster]) -> LocalCluster:
    return east_and_west[1]


@pytest.fixture(scope="session")
def central() -> Iterator[LocalCluster]:
    with LocalCluster("central") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _behind_a_proxy() -> Iterator[LocalCluster]:
    with LocalCluster("west", proxied=True) as cluster:
        yield cluster


@pytest.fixture
def proxied(_behind_a_proxy: LocalCluster) -> Iterator[LocalCluster]:
    """A shared cluster whose network a test may cut, slow down or silence; whole again afterwards."""
    yield _behind_a_proxy
    _behind_a_proxy.proxy.heal()


@pytest.fixture
def clusters() -> Iterator[Callable[..., tuple[LocalCluster, ...]]]:
    """Starts private clusters: ``clusters("east", "west", proxied=True)``; stopped after the test."""
    started: list[LocalCluster] = []

    def boot(*names: str, **options: object) -> tuple[LocalCluster, ...]:
        wanted = tuple(LocalCluster(name, **options) for name in names)
        start_all(wanted)
        started.extend(wanted)
        return wanted

    yield boot
    for cluster in started:
        cluster.stop()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command of the product in this process: exit code, standard output and standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """For tests that set up logging as a command does."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A short name no other test has: for topics, groups and topologies on shared clusters."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:24].strip("-")
    return f"{stem}-{uuid.uuid4().hex[:6]}"

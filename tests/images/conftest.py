"""Images built once, and run in real containers; all of it slow, and only where an engine answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chart_engine import render
from engine import Engine, build_images, find_engine, make_kafka_image, python_image
from pods import Kubelet
from scene_fixture import pytest_runtest_makereport, scene

__all__ = ["pytest_runtest_makereport", "scene"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.images)
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return find_engine(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="session")
def images(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Both images, built; gives the engine that has them."""
    build_images(engine, python_image(engine, tmp_path_factory.mktemp("base")))
    return engine


@pytest.fixture(scope="session")
def kafka_image(images: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image that `compose.yaml` and the test kit name."""
    return make_kafka_image(images, tmp_path_factory.mktemp("kafka"))


@pytest.fixture
def kubelet(images: Engine, tmp_path: Path) -> Callable[..., Kubelet]:
    """Renders the chart with values and stands ready to run its pods."""

    def make(values: dict[str, Any], **options: Any) -> Kubelet:
        return Kubelet(images, render(values), tmp_path / "pods", **options)

    return make

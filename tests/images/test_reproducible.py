"""The same source gives the same image: what an operator builds can be compared with what was released."""

from datetime import datetime

import pytest
from engine import Engine, build_images, python_image

from replicator import __version__

FIRST, AGAIN = f"replicator/worker:{__version__}", "replicator-again"
OF_THE_COMMIT = ("org.opencontainers.image.revision", "org.opencontainers.image.created")
LISTING = r"""
find / -xdev -path /proc -prune -o -path /sys -prune -o -path /dev -prune -o -path /tmp -prune -o -path /run -prune \
  -o -printf '%p %y %m %U:%G %T@ %l\n' | sort
echo ---
find / -xdev -path /proc -prune -o -path /sys -prune -o -path /dev -prune -o -path /tmp -prune -o -path /run -prune \
  -o -type f -print0 | sort -z | xargs -0 sha256sum
"""
MADE_BY_THE_ENGINE = {"/", "/etc", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab"}


@pytest.fixture
def again(images: Engine, tmp_path):
    """The worker's image from the same source a second time, with nothing remembered.

    Of the commit of the first one too: a later commit may be there by now.
    """
    base = python_image(images, tmp_path)
    revision, created = (labels(images, FIRST)[name] for name in OF_THE_COMMIT)
    seconds = round(datetime.fromisoformat(created).timestamp())
    commit = {"REVISION": revision, "SOURCE_DATE_EPOCH": str(seconds)}
    build_images(images, base, prefix=AGAIN, targets=("worker",), flags="--no-cache", **commit)
    yield f"{AGAIN}/worker:{__version__}"
    images.run("image", "rm", "--force", f"{AGAIN}/worker:{__version__}", check=False)


def test_two_builds_of_the_workers_image_hold_the_same_files(images, again):
    first, second = (files(images, FIRST), files(images, again))
    assert len(first) > 1000
    differ = sorted(path for path in first.keys() | second.keys() if first.get(path) != second.get(path))  # fmt: skip
    assert differ == [], [(path, first.get(path), second.get(path)) for path in differ[:20]]
    assert labels(images, FIRST) == labels(images, again)


def labels(engine: Engine, image: str) -> dict[str, str]:
    """What the image says of itself."""
    return dict(engine.inspect(image)["Config"]["Labels"])


def files(engine: Engine, image: str) -> dict[str, list[str]]:
    """Kind, mode, owner, time, link and digest of every file by its path."""
    said = engine.run(
        "run", "--rm", "--network=none", "--user=0", "--no-healthcheck", "--entrypoint=sh", image, "-c", LISTING,
    ).stdout  # fmt: skip
    listed, _, digests = said.partition("---\n")
    found = {path: [rest] for path, _, rest in (line.partition(" ") for line in listed.splitlines())}  # fmt: skip
    for line in digests.splitlines():
        digest, _, path = line.partition("  ")
        found.setdefault(path, []).append(digest)
    return {path: facts for path, facts in found.items() if path not in MADE_BY_THE_ENGINE}

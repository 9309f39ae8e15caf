"""The documentation is reachable from its index, and what it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "deploy/README.md")),
    ROOT / "helm/replicator/README.md",
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# A file of the repository between backticks: `policy/copies/naming.py`, `tests/chart`, `docs/acls.md`.
NAMED_FILE = re.compile(r"`([\w./-]+\.(?:py|md)|(?:tests|topologies|deploy)/[\w./-]+)`")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
# Where a page may start a path from.
BASES = (ROOT, ROOT / "replicator", DOCS)


def links(page: Path) -> list[tuple[str, Path, str]]:
    """(as written, file, anchor) of each link to this repository."""
    found = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    own = [link for link in found if "://" not in link]
    return [
        (link, (page.parent / link.partition("#")[0]).resolve() if link[0] != "#" else page,
         link.partition("#")[2])
        for link in own
    ]  # fmt: skip


def anchors(page: Path) -> set[str]:
    """Anchors of headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_file_of_the_documentation_is_reachable_from_its_index():
    reached, waiting = {INDEX}, [INDEX]
    while waiting:
        for _, file, _ in links(waiting.pop()):
            if file not in reached and file.is_relative_to(DOCS) and file.is_file():
                reached.add(file)
                waiting += [file] if file.suffix == ".md" else []
    pages_and_pictures = {each for each in DOCS.rglob("*") if each.suffix in {".md", ".png"}}
    assert pages_and_pictures - reached == set()


def test_links_lead_to_files_and_headings_that_exist():
    dead = [
        (page.relative_to(ROOT).as_posix(), link)
        for page in PAGES
        for link, file, anchor in links(page)
        if not file.exists() or (anchor and anchor not in anchors(file))
    ]
    assert dead == []


def test_files_that_the_documentation_names_exist():
    missing = [
        (page.relative_to(ROOT).as_posix(), name)
        for page in PAGES
        for name in NAMED_FILE.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        if not any((base / name).exists() for base in (*BASES, page.parent))
    ]
    assert missing == []


def test_every_guarantee_has_its_proofs():
    text = (DOCS / "guarantees.md").read_text(encoding="utf-8")
    promised = text.partition("## Guarantees")[2].partition("## Limitations")[0]
    proofs = (DOCS / "proofs.md").read_text(encoding="utf-8")
    guarantees = [
        each.rstrip(".") for each in re.findall(r"^\*\*(.+?)\*\*", promised, re.MULTILINE)
    ]
    assert re.findall(r"^### (.+)$", proofs, re.MULTILINE) == guarantees


def test_every_rule_has_tests_on_brokers_or_in_a_simulation():
    text = (DOCS / "proofs.md").read_text(encoding="utf-8").partition("\n## Rules\n")[2]
    rules = re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]
    assert len(rules) == 15
    rests = ("tests/integration/", "tests/acceptance/", "tests/spark/", "test_simulated_lanes.py")
    assert [rule[:60] for rule in rules if not any(place in rule for place in rests)] == []


def test_every_test_that_the_proofs_name_exists():
    named = NAMED_TEST.findall((DOCS / "proofs.md").read_text(encoding="utf-8"))
    missing = [
        (file, test)
        for file, test in named
        if f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []
    assert len(named) > 50

"""Runbooks: one for each alert and procedure, with commands that exist and links that lead somewhere."""

import re
import shlex

import pytest
import yaml
from chart_engine import ROOT
from program_commands import commands

FOLDER = ROOT / "docs" / "runbooks"
FILES = sorted(FOLDER.glob("*.md"))
PROCEDURES = {
    "assess", "planned-switchover", "unplanned-failover", "partial-failover",
    "failback-divergent-tails", "link-lost", "topic-recreated", "truncation", "poison-record",
    "certificate-rotation", "scaling", "upgrade", "control-topics-lost", "damaged-source",
    "deletions-refused", "target-lost-records", "registry-lost",
}  # fmt: skip


def alerts():
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    return {rule["alert"] for group in rules["groups"] for rule in group["rules"]}


def test_there_is_one_for_each_alert_and_each_procedure_and_no_other():
    assert {path.stem for path in FILES} == alerts() | PROCEDURES | {"README"}
    listed = re.findall(r"\]\(([\w-]+)\.md\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == sorted(alerts() | PROCEDURES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_commands_exist_with_their_options(path):
    text = path.read_text()
    known = commands()
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    inline = [each for each in re.findall(r"`(replicator [^`]*)`", text) if "..." not in each]
    lines = [
        line.strip().removeprefix("$ ") for line in blocks.splitlines() if line.strip()
    ] + inline
    used = [line.partition(" -- ")[2] if " -- replicator" in line else line for line in lines]
    for line in used:
        if not line.startswith("replicator "):
            continue
        words = shlex.split(line)[1:]
        if words == ["..."]:
            continue
        verb = next((v for v in (" ".join(words[:2]), words[0]) if v in known), None)
        assert verb, f"no such command: {line}"
        options = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
        assert options <= known[verb] | {"-f", "-o", "-v"}, line


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_links_lead_somewhere_and_it_is_short(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (path.parent / target).exists(), target
    assert text.startswith("# ")
    assert len(text.splitlines()) <= 60

"""The program's commands and their options, asked of the program itself."""

import typer

from replicator.cli.main import build_app

NOT_MERGED = {
    "bulk-sync": {"--flow", "--topic", "--master", "--conf"},
    "verify": {"--flow", "--topic", "--report", "--master", "--conf"},
    "archive": {"--flow", "--topic", "--master", "--conf"},
    "drill run": {"--yes"},
    "drill report": set(),
    "history": {"--link"},
    "switchover": {"--link", "--to", "--dry-run", "--yes"},
    "failover": {"--link", "--to", "--accept-loss", "--dry-run", "--yes"},
    "failback": {"--link", "--dry-run", "--yes"},
    "restore": set(),
}
"""Verbs of the contract that are built elsewhere, with the options that chart and runbooks use."""


def commands() -> dict[str, set[str]]:
    """Every command of the program with its options, and those that are to come."""

    def below(command, name):
        if hasattr(command, "commands"):  # releases of typer differ in whose class a group is
            return {
                n: o
                for each, sub in command.commands.items()
                for n, o in below(sub, f"{name} {each}".strip()).items()
            }
        options = {opt for p in command.params for opt in [*p.opts, *p.secondary_opts]}
        return {name: options | {"-h", "--help", "--debug"}}

    return {**NOT_MERGED, **below(typer.main.get_command(build_app()), "")}

"""The program's commands and their options, asked of the program itself."""

import typer

from replicator.cli.main import build_app


def commands() -> dict[str, set[str]]:
    """Every command of the program with its options."""

    def below(command, name):
        if hasattr(command, "commands"):  # releases of typer differ in whose class a group is
            return {
                n: o
                for each, sub in command.commands.items()
                for n, o in below(sub, f"{name} {each}".strip()).items()
            }
        options = {opt for p in command.params for opt in [*p.opts, *p.secondary_opts]}
        return {name: options | {"-h", "--help", "--debug"}}

    return below(typer.main.get_command(build_app()), "")

"""The programs of tests/bench, which no other test starts, find what they take from each other."""

import ast
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
PROGRAMS = sorted(BENCH.glob("*.py"))


def defined(tree: ast.Module) -> set[str]:
    """Names that a module has at its top level."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {name.asname or name.name for name in node.names}
        else:
            found |= {
                each.id
                for each in ast.walk(node)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.stem for program in PROGRAMS])
def test_what_a_program_imports_from_another_is_there(program):
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (sibling := BENCH / f"{node.module}.py").exists():
            names = defined(ast.parse(sibling.read_text(encoding="utf-8")))
            missing = {name.name for name in node.names} - names
            assert not missing, f"{sibling.name} has no {missing}"

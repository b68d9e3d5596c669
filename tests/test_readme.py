"""The README tells the truth of today: its Python runs, its commands exist, its links lead somewhere."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cloister.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_python_examples_run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Whatever someone does with this result" in done.stdout


def read_shape(text):
    """Return the lines without their layout, with a mark for each number: noise moves numbers, and they the columns."""
    words = [re.sub(r"\d[\d,.]*(e-?\d+)?", "#", line).split() for line in text.splitlines()]
    return [" ".join("#" if set(word) == {"─"} else word for word in line) for line in words]


def test_the_example_output_is_what_the_demo_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    printed = done.stdout[done.stdout.index("clinics: ") : done.stdout.index("\n\nWritten\n")]
    (shown,) = re.findall(r"```\n(clinics: .*?)```", README, re.DOTALL)
    assert read_shape(shown) == read_shape(printed), f"paste this into the README:\n{printed}"


def test_every_import_in_the_documentation_exists():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]:
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] in ("cloister", "papers"):
                    module = import_module(node.module)
                    assert all(hasattr(module, alias.name) for alias in node.names), f"{page.name}: {node.module}"


def test_every_command_in_the_readme_exists():
    commands = set(re.findall(r"^cloister (\w+)", README, re.MULTILINE))
    assert commands >= {"init", "run", "predict", "audit", "ledger"}
    for command in commands:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_every_relative_link_in_the_documentation_leads_to_a_file():
    for page in [ROOT / "README.md", ROOT / "SECURITY.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"

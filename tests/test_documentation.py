"""What the documentation names is there: files, modules, and links between pages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
FOLDERS = ("src", "tests", "bench", "papers", "tools")
SOURCES = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]


def show(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=show)
def test_files_that_a_page_names_exist(page):
    named = set(re.findall(r"`([\w./-]+\.py)(?:::\w+)?`", page.read_text()))
    assert {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in SOURCES)} == set()


@pytest.mark.parametrize("page", PAGES, ids=show)
def test_modules_that_a_page_names_exist(page):
    named = re.findall(r"`(cloister(?:\.\w+)+)`", page.read_text())
    for name in named:
        parts = name.split(".")
        homes = [f"src/{'/'.join(parts[:length])}" for length in (len(parts), len(parts) - 1)]
        assert any(f"{home}.py" in SOURCES or f"{home}/__init__.py" in SOURCES for home in homes), name


@pytest.mark.parametrize("page", PAGES, ids=show)
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        assert target.startswith(("http", "mailto")) or (page.parent / target).exists(), target

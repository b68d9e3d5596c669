"""``cloister report``: a page beside the result, a PDF where there is a browser, and errors that say what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.report.examples import make_result

from cloister.report.folder import write_result


@pytest.fixture
def result(job_file: Path) -> Path:
    return write_result(make_result(), Path("result-clinics"))


def test_a_page_is_written_beside_the_result(invoke, result):
    done = invoke("report", "result-clinics")
    assert done.exit_code == 0, done.output
    page = (result / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "clinics" in page
    write_result(make_result(), result, overwrite=True)  # a page is no reason to refuse
    assert not (result / "report.html").exists()


def test_a_page_goes_where_it_is_wanted(invoke, result):
    assert invoke("report", "result-clinics", "--out", "page.html").stdout.strip() == "page.html"
    assert Path("page.html").stat().st_mode & 0o777 == 0o644
    refused = invoke("report", "result-clinics", "--out", "missing/page.html")
    assert refused.exit_code == 2
    assert "the page must go to a folder that can be written" in refused.stderr


def test_a_run_writes_its_page_with_what_ledgers_hold(invoke, job_file):
    private = job_file.read_text().replace('name = "masked-sum-count"\niterations = 4', 'name = "synopsis"')
    job_file.write_text(private + "[budget]\nepsilon = 1\n")
    done = invoke("run", job_file, "--html")
    assert done.exit_code == 0, done.output
    page = Path("result-small/report.html").read_text()
    for said in ("if run again", "no cap", f"cloister run {job_file}", "[clusters]"):
        assert said in page, said
    assert "north.csv" not in page, "where tables are is nobody else's business"


def test_an_audit_is_shown(invoke, result):
    audit = {"claim": {"epsilon": 1.0, "delta": 1e-6}, "violates": True, "epsilon_lower": 2.5, "caught_below": None}
    Path("audit.json").write_text(json.dumps(audit | {"counts": {}}))
    assert invoke("report", "result-clinics", "--audit", "audit.json").exit_code == 0
    assert "refutes the claim" in (result / "report.html").read_text()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"claim": 1}', "\x00"])
def test_what_is_no_audit_is_refused(content, invoke, result):
    Path("audit.json").write_text(content)
    refused = invoke("report", "result-clinics", "--audit", "audit.json")
    assert refused.exit_code == 2
    assert "must be a file that 'cloister audit --json' printed" in refused.stderr


def test_without_a_browser_there_is_no_pdf(invoke, result, monkeypatch):
    monkeypatch.setenv("PATH", "")
    refused = invoke("report", "result-clinics", "--pdf")
    assert refused.exit_code == 2
    assert "must find a browser" in refused.stderr
    assert (result / "report.html").exists()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed: run .ci/browser")
def test_a_browser_prints_the_page(invoke, result):
    done = invoke("report", "result-clinics", "--pdf")
    assert done.exit_code == 0, done.output
    assert (result / "report.pdf").read_bytes().startswith(b"%PDF")

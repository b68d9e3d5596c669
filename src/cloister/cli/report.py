"""``cloister report``: a result folder as one HTML page, and that page as a PDF."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.planning import Plan
    from cloister.report import Result

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PDF_WITHIN_S = 60.0
_LEAST_RECORDS = 10


def report(
    folder: Annotated[Path, typer.Argument(metavar="RESULT", help="A result folder.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The page; default: report.html in the result folder.")] = None,
    job_file: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.TOML", help="Show the job, and what its plan forecasts (some seconds)."),
    ] = None,
    audit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show an audit: what 'cloister audit --json' printed.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also print it to a PDF, with an installed browser.")] = False,
) -> None:
    """Write a result as one HTML page that needs nothing else and makes no request."""
    from cloister.report.folder import REPORT_FILE, read_result
    from cloister.report.page.build import make_page

    result = read_result(folder)
    page = make_page(
        result,
        forecast=None if job_file is None else _forecast(job_file, result),
        audit=None if audit is None else _read_audit(audit),
        job=None if job_file is None else _read_text(job_file),
        commands=(f"cloister report {folder}",),
    )
    path = folder / REPORT_FILE if out is None else out
    write_page(page, path)
    typer.echo(str(path))
    if pdf:
        typer.echo(str(print_to_pdf(path)))


def _forecast(job_file: Path, result: Result) -> str | None:
    """Return what the job's plan expects of as many records as the result says that there are."""
    from cloister.jobfile import load_job
    from cloister.planning import describe_forecast
    from cloister.planning import plan as make_plan

    sizes, records = result.sizes, None
    if sizes is not None and sizes.unit == "records" and sizes.total >= _LEAST_RECORDS:
        records = int(float(f"{sizes.total:.2g}"))  # more digits would be noise
    made: Plan = make_plan(load_job(job_file), records=records, quick=True)
    return describe_forecast(made)


def _read_audit(path: Path) -> dict[str, Any]:
    """Return an audit, if that is what the file holds."""
    import msgspec

    try:
        found = msgspec.json.decode(_read_text(path), type=dict[str, Any])
        complete = all(key in found for key in ("violates", "epsilon_lower", "caught_below", "counts"))
    except msgspec.DecodeError:
        complete = False
    if not complete or not isinstance(found.get("claim"), dict):
        raise ConfigError(
            f"--audit must be a file that 'cloister audit --json' printed; got {path}, which is something else. "
            "Run: cloister audit JOB.TOML --json > audit.json"
        )
    return found


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"{path} must be a readable text file; got: {reason}. Name another file.") from None


def write_page(page: str, path: Path) -> None:
    """Write a page whole or not at all."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            file.write(page.encode())
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"the page must go to a folder that can be written; got {path}: {reason}.") from None


def print_to_pdf(page: Path) -> Path:
    """Print a page to a PDF beside it, with a browser that is installed.

    Raises
    ------
    ConfigError
        If there is no browser, or it did not print.
    """
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise ConfigError(
            f"--pdf must find a browser ({', '.join(_BROWSERS)}) on the PATH; got none. Install one, or print "
            f"{page} from any browser."
        )
    path = page.with_suffix(".pdf")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-pdf-header-footer",
            f"--user-data-dir={profile}",
            f"--print-to-pdf={path.resolve()}",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            page.resolve().as_uri(),
        ]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=_PDF_WITHIN_S, check=False)
        except subprocess.TimeoutExpired:
            ended = None
    if ended is None or ended.returncode != 0 or not path.exists():
        raise ConfigError(f"{browser} must print the page; it did not. Print {page} from any browser.")
    return path

"""What holds for every test: nothing is written into the real home of whoever runs them, and Ctrl-C can be tested."""

from __future__ import annotations

import gc
import signal

import pytest


def pytest_configure() -> None:
    """Let the programs that tests start hear interrupts also where the tests run in the background of a shell."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Tell the garbage collector of all modules and tests that they stay: it need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def user_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    """Keep default ledgers in a folder of this test's own."""
    folder = tmp_path_factory.mktemp("user-data")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder

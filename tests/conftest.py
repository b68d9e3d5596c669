"""What holds for every test: nothing is ever written into the real home of whoever runs them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def user_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    """Keep default ledgers in a folder of this test's own."""
    folder = tmp_path_factory.mktemp("user-data")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder

"""What the program says about itself: exit codes in order, and where its network models come from."""

from __future__ import annotations

import re

from tests.cli.conftest import Invoke

from cloister.cli.failures import EXIT_CODES_HELP
from cloister.errors import CloisterError


def test_exit_codes_are_listed_in_order_and_none_is_missing() -> None:
    listed = [int(code) for code in re.findall(r"^ +(\d+)  ", EXIT_CODES_HELP, flags=re.MULTILINE)]
    assert listed == sorted(set(listed))
    assert {error.exit_code for error in CloisterError.__subclasses__()} <= set(listed)


def test_network_models_name_the_paper_that_they_are_from(invoke: Invoke) -> None:
    shown = " ".join(invoke("networks").stdout.split())
    assert '"Privacy-Preserving Vertical K-Means Clustering", Table 1' in shown
    assert "seed" not in shown

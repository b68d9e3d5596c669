"""What the owner of a table or ledger is told, and others are not."""

import re
from contextlib import contextmanager

import pytest

from cloister.errors import AbsentError


@contextmanager
def told_to_owner(kind, match="", *, party=None):
    """Expect that a party is absent, and that its owner is told an error of this kind; yields what was caught."""
    with pytest.raises(AbsentError) as caught:
        yield caught
    error = caught.value
    assert type(error.why) is kind
    assert re.search(match, str(error.why)), str(error.why)
    assert party in (None, error.party)
    assert str(error) == str(AbsentError(error.party))

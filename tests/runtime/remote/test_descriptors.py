"""How many files a coordinator may open."""

import resource

import pytest

from cloister.errors import ConfigError
from cloister.runtime.remote import descriptors
from cloister.runtime.remote.descriptors import raise_file_limit


@pytest.fixture
def limits(monkeypatch):
    """The limit of this process, soft and hard, as the system keeps it."""
    kept = [(1024, 4096)]
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda which: kept[-1])
    monkeypatch.setattr(descriptors.resource, "setrlimit", lambda which, pair: kept.append(pair))
    return kept


def test_a_limit_that_is_high_enough_stays(limits):
    raise_file_limit(700)
    assert limits == [(1024, 4096)]


def test_a_limit_is_raised_as_far_as_needed(limits):
    raise_file_limit(2064)
    assert limits[-1] == (2064 + 256, 4096)


def test_a_limit_that_cannot_be_raised_is_an_error_with_both_numbers_and_a_remedy(limits):
    with pytest.raises(ConfigError, match="20256 here; it is allowed 4096"):
        raise_file_limit(20_000)
    assert limits == [(1024, 4096)]


def test_no_limit_is_enough(limits):
    limits.append((resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    raise_file_limit(10**6)
    assert len(limits) == 2

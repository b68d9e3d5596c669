"""What `import cloister` offers."""

import pytest

import cloister


def test_the_package_offers_what_a_user_needs():
    for name in cloister.__all__:
        assert getattr(cloister, name) is not None
    assert callable(cloister.simulate)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = cloister.nothing

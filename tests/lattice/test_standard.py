import pytest

from cloister.errors import ConfigError
from cloister.lattice import Parameters, check_security
from cloister.lattice.primes import find_primes


@pytest.mark.parametrize(("degree", "bits"), [(2048, 54), (4096, 109), (8192, 218)])
def test_the_table_is_a_ceiling(degree, bits):
    check_security(degree, 2**bits - 1)
    with pytest.raises(ConfigError, match=f"at most {bits} bits .* got {bits + 1}"):
        check_security(degree, 2**bits)


@pytest.mark.parametrize("degree", [1024, 2049, 16384, 0])
def test_unknown_degrees_are_refused(degree):
    with pytest.raises(ConfigError, match="must be one of 2048, 4096, 8192"):
        check_security(degree, 2**20)


@pytest.mark.parametrize(("degree", "most"), [(2048, 2), (4096, 4), (8192, 8)])
def test_parameters_stop_at_the_table(degree, most):
    assert Parameters.make(degree, most, 1024).modulus_bits <= {2048: 54, 4096: 109, 8192: 218}[degree]
    with pytest.raises(ConfigError, match="128-bit security"):
        Parameters(degree=degree, primes=find_primes(degree, most + 1), plaintext_modulus=1024)

"""Open files: each connection is one, and the usual limit of a process, 1024, is for programs that have few."""

from __future__ import annotations

import resource

from cloister.errors import ConfigError

_OTHERS = 256  # journals, ledgers, libraries, what gRPC opens for itself


def raise_file_limit(connections: int) -> None:
    """Let this process open as many files as so many connections need, within the limit that it was given.

    Raises
    ------
    ConfigError
        If that limit is too low.
    """
    wanted = connections + _OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise ConfigError(
            f"a process must be allowed as many open files as connections, {wanted} here; it is allowed {hard}. Raise "
            f"the limit: ulimit -Hn {wanted} as root, or LimitNOFILE={wanted} in a systemd unit."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

"""Job files: TOML to a job, through the registry, and a template. Errors know the file, the line and the key.

Reading order: ``sections``, ``reader``, ``key_lines`` (on which line a key stands), ``template`` (a new job file).
"""

from cloister.jobfile.reader import (
    check_own_policy,
    load_clients_setup,
    load_job,
    load_own_side,
    load_party_setup,
    load_policy,
    load_setup,
    parse_job,
    parse_setup,
)

__all__ = [
    "check_own_policy",
    "load_clients_setup",
    "load_job",
    "load_own_side",
    "load_party_setup",
    "load_policy",
    "load_setup",
    "parse_job",
    "parse_setup",
]

"""A job between organisations: one coordinator, and one process for each party, which holds that party's table alone.

Reading order: ``course`` (which sessions a run has), ``run_files`` (what is kept for the case of a kill), ``payment``,
``own_roles`` and ``party_run`` (one party's part), ``coordinator_run`` (the coordinator's), ``ends`` (both, connected),
``watch`` (what is shown of a run).
How they talk is in :mod:`cloister.runtime.remote`; docs/network.md has it message by message.
"""

from cloister.deployment.ends import End, serve, take_part

__all__ = ["End", "serve", "take_part"]

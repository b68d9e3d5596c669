"""What organisations agree on before a session, and what each can prove of it afterwards.

Reading order: ``peers`` (who is at the other end of a connection).
"""

from cloister.agreement.peers import check_peer

__all__ = ["check_peer"]

"""What organisations agree on before a session, and what each can prove of it afterwards.

Reading order: ``hello`` (who is at the other end of a connection).
"""

from cloister.agreement.hello import NONCE_BYTES, Hello, check_peer, say_hello

__all__ = ["NONCE_BYTES", "Hello", "check_peer", "say_hello"]

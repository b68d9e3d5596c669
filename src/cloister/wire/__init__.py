"""The wire: typed messages to bytes and back, and the session rules that both ends enforce.

Reading order: :mod:`~cloister.wire.codec` (arrays, messages, envelopes), :mod:`~cloister.wire.endpoint` (session, step
and sender checks around a role).
"""

from cloister.wire.codec import Array, Codec, Envelope
from cloister.wire.endpoint import CoordinatorEndpoint, PartyEndpoint

__all__ = ["Array", "Codec", "CoordinatorEndpoint", "Envelope", "PartyEndpoint"]

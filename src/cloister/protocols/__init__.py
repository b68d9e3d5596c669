"""The registry: one package per published system, and one line here for each protocol. The first is the default.

Each package reads as its paper does: threat model, messages, party, coordinator. What the rest of Cloister needs of it is
one object (:mod:`cloister.protocol`).
"""

from cloister.protocol import register
from cloister.protocols.synopsis.protocol import Synopsis

for protocol in (Synopsis(),):
    register(protocol)

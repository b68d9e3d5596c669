"""Serverless sums: parties add their vectors in a ring, without an aggregator (FastLloyd 7.2, thesis 7.3).

In each round, M parties hold an integer vector each and learn the sum over the round's members S. A relay carries the
messages and deals randomness; it adds nothing up and can read nothing. Noise is the users' choice: with
*local* noise or noise *shares* it is already in each party's vector (7.3.1, 7.3.3); with *joint* noise the members draw
it together by secure computation and add their shares of it (7.3.2, :mod:`cloister.joint_noise`).

The ring of 7.3.1, as printed, lets the two neighbours of a party subtract what it received from what it sent. So here

    party i adds   v_i + pad_i + mask_i (+ its share of the joint noise)   to what it received and passes it on;

the pads cancel over S, and the masks stay until all of S have added and reveal them
(:mod:`cloister.aggregation.pairwise_pads`). A silent party is left out: the sum starts again with the others, with
fresh pads, masks and joint noise, but with the same vectors, which each party made and paid for once. A party that
leaves after all have added stays in the sum; ``restorers_min`` others restore its mask. Everything that parties send
each other is in boxes that the relay can neither read nor change.

====================================  ===============  ==============  ===========
who                                   another's v_l    sum over S      joint noise
====================================  ===============  ==============  ===========
relay                                 no               no              no
party                                 no               yes             no
parties, two of S not among them      no               yes             no
relay and parties, two of S not       no (see below)   yes             yes
====================================  ===============  ==============  ===========

Breaks if: all of S but one combine what they see. The sum minus their vectors is the last one's vector, so with two
parties, each gets the other's. ``restorers_min`` parties, even without the relay, can also open aborted sums: as a
difference of sums, they get the vector of a party that was late or stopped, and with joint noise several draws of noise
on one vector. So joint noise takes all parties as restorers, and noise shares take more than may collude. With joint
noise, the relay, which deals, and any one party together know the noise. A party that lies about its vector, pad or
mask changes the sum but learns nothing from that; one that seals garbage can have its neighbour left out, or stop the
session. What is proved: docs/proofs/ring-sum.md.

Costs, with m members, vectors of L words of w bytes, and openings of b_1, ..., b_s bytes where noise is joint:

- steps: 5 to open, m + 2 + s for each round, 1 to finish; an attempt that fails costs at most m + s more;
- messages per party, each way: 4, then 3 + s per round, then 1;
- bytes that a party sends: 49 (m - 1) once; Lw + 16 + 48 + sum (b_i + 16) per round;
- bytes that it receives: 49 (m - 1) + 96 m once; 2 (Lw + 16) + 48 m + (m - 1) sum (b_i + 16) and a deal per round (the
  first of the ring Lw + 16 less);
- in addition, at most 80 bytes of envelope per message, and 8 per box in it.

CPU: m - 1 keystreams of Lw bytes to add, m to open, in addition to the party's own work.

Reading order: :mod:`.terms`, :mod:`.messages`, :mod:`.keyring`, :mod:`.party`, :mod:`.relay`.
"""

from cloister.protocols.serverless.messages import CODEC
from cloister.protocols.serverless.party import RingParty
from cloister.protocols.serverless.relay import RelayOutcome, relay
from cloister.protocols.serverless.terms import Contributor, JointNoise, Terms

__all__ = ["CODEC", "Contributor", "JointNoise", "RelayOutcome", "RingParty", "Terms", "relay"]

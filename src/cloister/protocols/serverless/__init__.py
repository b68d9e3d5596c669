"""Serverless sums: parties add their vectors in a ring, without an aggregator (FastLloyd 7.2, thesis 7.3).

M parties hold an integer vector each round and learn its sum over the members S of the round. A relay carries the
messages and deals randomness; it adds nothing and can read nothing. Who puts noise where is not decided here: with
*local* noise or noise *shares* it is in each party's vector already (7.3.1, 7.3.3), with *joint* noise the members draw
it together inside secure computation and add their shares of it (7.3.2, :mod:`cloister.joint_noise`).

The ring of 7.3.1, as printed, lets the two neighbours of a party subtract what it received from what it sent. So here

    party i adds   v_i + pad_i + mask_i (+ its share of the joint noise)   to what came, and passes it on;

the pads cancel over S, and the masks stay until all of S have added and reveal them
(:mod:`cloister.aggregation.pairwise_pads`). A party that is silent is left out: the sum is begun again with the
others, with fresh pads, masks and joint noise, and with the same vectors, which each party made and paid for once. A
party that leaves after all have added stays in the sum; ``restorers_min`` others restore its mask. All that parties
send each other is in boxes that the relay can neither read nor change.

====================================  ===============  ==============  ===========
who                                   another's v_l    sum over S      joint noise
====================================  ===============  ==============  ===========
relay                                 no               no              no
party                                 no               yes             no
parties, two of S not among them      no               yes             no
relay and parties, two of S not       no (see below)   yes             yes
====================================  ===============  ==============  ===========

Breaks if: all of S but one put together what they see: the sum less theirs is the last one's vector, so that with two
parties each has the other's. ``restorers_min`` parties, even without the relay, can also open sums that were given up:
they have the vector of a party that was late or stopped as a difference of sums, and with joint noise several draws of
it on one vector. So joint noise takes all parties as restorers, and shares of noise more than may collude. With joint
noise, the relay, which deals, and any one party know the noise. A party that lies about its vector, pad or mask changes
the sum and learns no more by it; one that seals garbage can have its neighbour left out, or stop the session. What is
proved: docs/proofs/ring-sum.md.

Costs, with m members, vectors of L words of w bytes, and openings of b_1, ..., b_s bytes where noise is joint:

- steps: 5 to open, m + 2 + s for each round, 1 to finish; an attempt that fails costs at most m + s more;
- messages of a party, each way: 4, then 3 + s a round, then 1;
- bytes that a party sends: 49 (m - 1) once; Lw + 16 + 48 + sum (b_i + 16) a round;
- bytes that it receives: 49 (m - 1) + 96 m once; 2 (Lw + 16) + 48 m + (m - 1) sum (b_i + 16) and a hand a round (the
  first of the ring Lw + 16 less);
- and for each message at most 80 bytes of envelope, 8 for each box in it.

CPU: m - 1 keystreams of Lw bytes to add, m to open, besides the party's own work.

Reading order: :mod:`.terms`, :mod:`.messages`, :mod:`.introduction`, :mod:`.keyring`, :mod:`.party`, :mod:`.totals`,
:mod:`.relay`.
"""

from cloister.protocols.serverless.messages import CODEC
from cloister.protocols.serverless.party import RingParty
from cloister.protocols.serverless.relay import RelayOutcome, relay
from cloister.protocols.serverless.terms import JointNoise, Terms, Walker

__all__ = ["CODEC", "JointNoise", "RelayOutcome", "RingParty", "Terms", "Walker", "relay"]

"""Serverless sums: parties add their vectors in a ring, without an aggregator (FastLloyd 7.2, thesis 7.3).

In each round, M parties hold an integer vector each and learn the sum over the round's members S. A relay carries the
messages and deals randomness; it adds nothing up and can read nothing. Noise is the users' choice: with
*local* noise or noise *shares* it is already in each party's vector (7.3.1, 7.3.3); with *joint* noise the members draw
it together by secure computation and add their shares of it (7.3.2, :mod:`cloister.joint_noise`).

The ring of 7.3.1, as printed, lets the two neighbours of a party subtract what it received from what it sent. So here

    party i adds   v_i + pad_i + mask_i (+ its share of the joint noise)   to what it received and passes it on;

the pads cancel over S, and the masks stay until all of S have added and open them
(:mod:`cloister.aggregation.double_masks`). A party that is silent is left out: the sum is begun again with the
others, with fresh pads, masks and joint noise, and with the same vectors, which each party made and paid for once. A
party that leaves after all have added stays in the sum; ``colluding_max`` + 1 others restore its mask, once
``members_min`` have opened. All that parties send each other is in boxes that the relay can neither read nor change.

====================================  ===============  ==============  ===========
who                                   another's v_l    sum over S      joint noise
====================================  ===============  ==============  ===========
relay                                 no               no              no
party                                 no               yes             no
parties, two of S not among them      no               yes             no
an active relay and parties, two not  no               once a round    yes
====================================  ===============  ==============  ===========

Breaks if: all of S but one put together what they see: the sum less theirs is the last one's vector, so that with two
parties each has the other's. More than ``colluding_max`` parties, with the relay, can also open sums that were given
up. With joint noise nothing is restored, or parties could see several draws on one vector: a party that leaves while a
sum is opened ends the session; and the relay, which deals, and any one party know the noise. A party that lies about
its vector, pad or mask changes the sum and learns no more by it; one that seals garbage can have its neighbour left
out, or stop the session. What is proved: docs/proofs/secure-sum.md.

Costs, with m members, vectors of L words of w bytes, and openings of b_1, ..., b_s bytes where noise is joint:

- steps: 4 to open, m + 2 + s for each round, 2 to finish; an attempt that fails costs at most m + s more;
- messages of a party, each way: 3, then 3 + s per round, then 2;
- bytes that a party sends: Lw + 32 + 48 + sum (b_i + 16) per round, where fewer than all are enough 49 (m - 1) + 80
  more; 80 at the end;
- bytes that it receives: 96 m once; 2 (Lw + 32) + 48 m + 32 + (m - 1) sum (b_i + 16) and a hand per round (the first of
  the ring Lw + 32 less); 80 m at the end;
- and for each message at most 80 bytes of envelope, 8 for each box in it.

CPU: m - 1 keystreams of Lw bytes to add, m to open, in addition to the party's own work.

Reading order: :mod:`.terms`, :mod:`.messages`, :mod:`.masks`, :mod:`.party`, :mod:`.relay`.
"""

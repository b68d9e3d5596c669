"""Private alignment of record IDs: intersection where columns are split, union where only membership is hidden.

The union is what Li, Hou, Buyukates and Avestimehr, "Secure Federated Clustering" (2022), need in section 6.

n parties hold sets of IDs and get a common order of the IDs that all hold, or that any holds: each learns which of its
own rows is at each place, and how many places there are. The idea is due to Meadows (1986): hash every ID to a point of
a group, let every party multiply every point by a secret number, and compare the results. Here

    party h blinds the list of party i, once, with a key k_hi of its own for that list;
    the list becomes  prod_h k_hi H(x), x in S_i,  in an order that i has drawn;
    the coordinator maps it to prod_h k_h1 H(x) (it gets the ratios k_hi / k_h1), compares the lists,
    gives equal points places in a random order, and sends each owner the places of its list;
    the parties move all places by a permutation from a seed that the coordinator does not know.

Lists travel between parties in sealed boxes. In SecFC, every client knows the set of all IDs. Here, a client learns how
many there are, m, and the places of its own, which is all that the sharing in appendix B needs.

===================  ===========  ================  =========  ================  =================
who                  other IDs    sizes of lists    count      overlaps (sizes)  holders of places
===================  ===========  ================  =========  ================  =================
coordinator          no           yes               yes        yes               no
party                no           yes               yes        no (n = 2: yes)   its own places
n - 1 parties        no           yes               yes        with the last     their own places
===================  ===========  ================  =========  ================  =================

Breaks if: the coordinator and one party work together: they know who holds which of that party's IDs, but still none
that it does not hold. Semi-honest: all follow the protocol; a party that lies about its IDs learns whether others hold
those instead. What is proved: docs/proofs/align.md.

The group is Curve25519's, by X25519 of the ``cryptography`` package, which is a dependency anyway; IDs are hashed onto
the curve as RFC 9380 says (:mod:`.group`, on cofactor, twist and encodings, too).

Costs: per ID, n scalar multiplications (43 microseconds each) and a hash (11), and one multiplication by the
coordinator except for the first list; 32 bytes per hop, 8 for the place. Every 8,192 IDs of the longest list take
n + 1 messages per party each way.

Reading order: :mod:`.terms`, :mod:`.identifiers`, :mod:`.group`, :mod:`.party`, :mod:`.coordinator`, :mod:`.alignment`.
"""

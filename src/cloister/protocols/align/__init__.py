"""Private alignment of record IDs: intersection for vertical jobs, union for SecFC (SecFC 6, appendix B).

n parties hold sets of IDs and get a common order of the IDs that all hold, or that any holds: each learns which of its
own rows stands at each place, and how many places there are. The idea is Meadows' (1986): hash every ID to a point of
a group, let every party multiply every point by a secret number, compare what comes out. Here

    party h blinds the list of party i, once, with a key k_hi of its own for that list;
    the list comes out as  prod_h k_hi H(x), x in S_i,  in an order that i has drawn;
    the coordinator takes it to prod_h k_h1 H(x) (it is told the ratios k_hi / k_h1), compares the lists,
    gives equal points places in a random order, and tells each owner the places of its list;
    the parties move all places by a permutation from a seed that the coordinator does not know.

Lists travel between parties in sealed boxes. SecFC lets every client know the set of all IDs; here a client learns how
many there are, m, and the places of its own, which is all that the sharing of appendix B needs.

===================  ===========  ================  =========  ================  =================
who                  other IDs    sizes of lists    count      overlaps (sizes)  holders of places
===================  ===========  ================  =========  ================  =================
coordinator          no           yes               yes        yes               no
party                no           yes               yes        no (n = 2: yes)   its own places
n - 1 parties        no           yes               yes        with the last     their own places
===================  ===========  ================  =========  ================  =================

Breaks if: the coordinator and one party work together: they know who holds which of that party's IDs, and still none
that it does not hold. Semi-honest: all follow the protocol; a party that lies about its IDs learns whether others hold
those instead. What is proved: docs/proofs/align.md.

The group is Curve25519's, by X25519 of the ``cryptography`` package, which is a dependency anyway (:mod:`.blinding` on
cofactor, twist and encodings); IDs are hashed onto the curve as RFC 9380 says (:mod:`.hashing`).

Costs: for each ID n scalar multiplications (43 microseconds each) and a hash (11), and one multiplication by the
coordinator but for the first list; 32 bytes for each hop, 8 for its place. Each 8,192 IDs of the longest list take
n + 1 messages of a party each way.

Reading order: :mod:`.terms`, :mod:`.identifiers`, :mod:`.hashing`, :mod:`.blinding`, :mod:`.messages`, :mod:`.party`,
:mod:`.matching`, :mod:`.coordinator`, :mod:`.alignment`.
"""

from cloister.protocols.align.alignment import (
    Alignment,
    check_alignments,
    check_ids,
    decode_alignment,
    encode_alignment,
)
from cloister.protocols.align.coordinator import AlignmentOutcome, coordinate
from cloister.protocols.align.identifiers import normalise_ids
from cloister.protocols.align.leakage import LEAKAGE
from cloister.protocols.align.messages import CODEC
from cloister.protocols.align.party import AlignParty
from cloister.protocols.align.terms import ID_KINDS, Mode, NormalForm, Terms

__all__ = [
    "CODEC",
    "ID_KINDS",
    "LEAKAGE",
    "AlignParty",
    "Alignment",
    "AlignmentOutcome",
    "Mode",
    "NormalForm",
    "Terms",
    "check_alignments",
    "check_ids",
    "coordinate",
    "decode_alignment",
    "encode_alignment",
    "normalise_ids",
]

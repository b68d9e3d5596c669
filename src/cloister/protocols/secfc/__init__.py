"""SecFC: exact Lloyd's algorithm over Lagrange-coded shares.

Li, Hou, Buyukates and Avestimehr, "Secure Federated Clustering" (2022).

n clients hold different records with the same columns. Each rounds its records to a grid and shares them so that any t
clients together learn nothing about the others' (section 4.1, phase 1). In a round, every client sums its shares by
cluster and computes coded distances; a coordinator decodes the true ones, as integers, and assigns every record to its
nearest centre (phase 2, Algorithm 1). The labels of every round are those of Lloyd's algorithm on the rounded records
in one place, whoever holds which (Theorem 1): no noise, no rounding after the first, no ties decided differently.

Beyond the paper:

- the number of records, on which grid and field depend, is agreed on in the session, from every client's count;
- replies are weighted and padded (:mod:`.holder`): the coordinator reads the sum over segments and clients, d', and
  nothing of a single segment or a single client's reply;
- any 2l + 2t - 1 clients answer a round; silent ones are replaced, and aborted attempts reveal
  nothing new, since every set decodes to the same d';
- columns of clusters whose members did not change are not measured again; labels are sent as changes;
- comparisons are exact (:mod:`.labels`); an empty cluster takes the record farthest from its centre;
- membership privacy (section 6, appendix B): rows for the whole union, zeros where a client holds nothing;
- centres are revealed by l + t clients to all clients, and not to the coordinator (section 7), exactly or with noise.

Threat model: all roles are semi-honest. Nothing is promised against clients or coordinators that lie. If clients get
different labels, pads do not cancel, which is noticed.

==========================================  ===========  ================
value                                       coordinator  client
==========================================  ===========  ================
distances of records to centres             yes          no
records up to an isometry, in time          yes          no
single clients' replies, segments           no           own
records                                     no           own
labels, every round                         yes          yes
how many records each client has            yes          yes
who holds which record                      yes          yes
... with membership private                 no           own
centres                                     no           if revealed
==========================================  ===========  ================

Breaks if (``describe_break``): the coordinator alone has all records up to an isometry after about d / (k - 1) rounds,
and with any one client's help all records as they are. A test does both. More than t clients can read parts of records.
What is proved: docs/proofs/secfc.md and lagrange-sharing.md. What noise on centres protects, and what it does not:
``describe_scope`` (:mod:`.leakage`).

Dropouts: a client that is silent before rounds begin is out; its records stay in if it had shared all of them, and are
left out if not. With membership private, all must share, or the session ends. Later, any n - (2l + 2t - 1) clients may
be silent in any round, different ones each time. If more are, the session ends with ``TooFewPartiesError``.

Costs, with r = 1 or 2 primes, s = d / l rounded up, and m_j the client's rows (all m with membership private). A client
sends 8 r s m_j (n - 1) bytes once, then 8 r m k' per round, k' the clusters that changed; it receives 8 r s (m - m_j)
once, and at most m bytes of labels per round. CPU: for a client, about 1 ns for each of r m k' s products per round,
and two keystreams as long as its reply; for the coordinator, 2l + 2t - 1 additions per distance. Steps: 3 for the seed,
1 to meet, one for each chunk of shares and one more, 1 to begin, one per round, 1 to reveal, 1 to finish.

Reading order: :mod:`.agreement`, :mod:`.leakage`, :mod:`.messages`; phase 1: :mod:`.layout`, :mod:`.sharing`; phase 2:
:mod:`.labels`, :mod:`.holder`; the roles: :mod:`.party`, :mod:`.coordinator`; then :mod:`.plan`, :mod:`.protocol` (what
the rest of Cloister needs).
"""

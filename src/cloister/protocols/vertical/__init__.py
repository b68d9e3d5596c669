"""Vertical k-means: parties that hold different columns of the same records, and no comparison under encryption.

After "Privacy-Preserving Vertical K-Means Clustering" (seed 003), which encrypts one party's columns and evaluates,
every round and for every record, an argmin of k distances with a polynomial of high degree. Here every holder of
encrypted columns sorts its records into a few *cells*, by a public codebook, and encrypts for each cell c which records
are in it, once. The computing party, Alice, knows her own columns, the codebook and the centres: so she knows which
cluster a record joins IF it is in c. Counts and sums of clusters are then inner products of her plaintext weights with
the ciphertexts: one product of depth one, exact integers.

1. every party makes a codebook of its own columns, paid for where it reads records;
2. key holders make a key: one party's, or one that they hold together;
3. holders encrypt their cells, block by block, and send them once (:mod:`.uploads`);
4. one pass gives a noisy joint histogram of Alice's cells and the encrypted ones; its cells are clustered: the start;
5. one or two rounds of Lloyd's algorithm: Alice computes under encryption (:mod:`.evaluation`), re-randomises, adds her
   noise and a flood, key holders decrypt and add theirs; everyone goes on with the same noisy totals.

Threat model: all roles are semi-honest. Nothing is promised against holders that encrypt something else than
indicators, or against weights that are not those of the protocol.

Who learns what:

===========  ===================  ==================  ============
role         others' columns      sums without noise  noisy totals
===========  ===================  ==================  ============
relay        no                   no                  no
Alice        no                   no                  DP
key holder   no                   no                  DP
others       no                   no                  DP
===========  ===================  ==================  ============

The relay carries boxes that it cannot read; it learns who takes part, which stages there are, and how long boxes are.
How many records are aligned, and who they are, all parties know from the alignment. How long Alice computes depends a
little on how many clusters occur in a block of records.

**Breaks if**: Alice and those who decrypt collude (``leakage.describe_break``).

**Costs**: see ``cloister plan``. With two parties and m cells an upload of m log2(q) / 8 bytes a record (108 bytes for
m = 16 and 54 bits), once; a round is one transform for each block, cell and cluster that occurs there, and for each of
Alice's columns as many more; an answer is one polynomial for each of k (d + 1) numbers.

Reading order: :mod:`.settings`, :mod:`.layout`, :mod:`.codebook` with :mod:`.private_codebook`, :mod:`.query`,
:mod:`.decision`, :mod:`.statistics`, :mod:`.start`, :mod:`.rounds`, :mod:`.pipeline`, :mod:`.rehearsal`: the algorithm
in the clear. Then :mod:`.flood`, :mod:`.schedule`, :mod:`.agreement`, :mod:`.messages`, :mod:`.mail`, :mod:`.parcels`,
:mod:`.uploads`, :mod:`.evaluation`, :mod:`.relayed`, :mod:`.party`, :mod:`.computing`, :mod:`.holder`,
:mod:`.coordinator`: the session. Labels: :mod:`cloister.protocols.vertical_labels`.
"""

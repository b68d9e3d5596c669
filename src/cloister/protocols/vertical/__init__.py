"""Vertical k-means: parties that hold different columns of the same records, and no comparison under encryption.

After Mazzone et al., "Privacy-Preserving Vertical K-Means Clustering", which encrypts one party's columns and
evaluates, for every round and every record, an argmin of k distances with a polynomial of high degree. Here, every
holder of encrypted columns sorts its records into a few *cells* of a public codebook and encrypts once, for each cell
c, which records are in it. The computing party, Alice, knows her own columns, the codebook and the centres, so she
knows which cluster a record joins IF it is in c. Counts and sums of clusters are then inner products of her plaintext
weights with the ciphertexts: one product of depth one, exact integers.

1. every party makes a codebook of its own columns, paid for where it reads records;
2. key holders make a key: one party's, or one that they share;
3. holders encrypt their cells, block by block, and send them once (:mod:`.uploads`);
4. one pass gives a noisy joint histogram of Alice's cells and the encrypted ones; its cells are clustered: the start;
5. one or two rounds of Lloyd's algorithm: Alice computes under encryption (:mod:`.evaluation`), re-randomises, adds her
   noise and a flood, key holders decrypt and add theirs; she goes on with the noisy totals, which everyone is told.

Only Alice runs the algorithm. She states radii and noise of each pass (:mod:`.stated`); key holders derive norm and
price themselves and refuse less noise than was agreed. She posts the result, so all parties end with the same.

Threat model: all roles are semi-honest. Nothing is promised against holders that encrypt something else than
indicators, or against weights that are not those of the protocol. A lying Alice can state false centres.

Who learns what:

===========  ===================  ==================  ============
role         others' columns      sums without noise  noisy totals
===========  ===================  ==================  ============
relay        no                   no                  no
Alice        no                   no                  DP
key holder   no                   no                  DP
others       no                   no                  DP
===========  ===================  ==================  ============

The relay carries boxes that it cannot read; it learns who takes part, the stages, and the lengths of boxes.
All parties know from the alignment how many records are aligned and which they are. How long Alice computes depends a
little on how many clusters occur in a block of records.

**Breaks if**: Alice and those who decrypt collude (``leakage.describe_break``).

**Costs**: see ``cloister plan``. With two parties and m cells an upload of m log2(q) / 8 bytes per record (108 for m =
16 and 54 bits), once; a round is one transform for each block, cell and cluster that occurs there, and for each of
Alice's columns as many more; an answer is one polynomial for each of k (d + 1) numbers.

Reading order: :mod:`.options`, :mod:`.protocol`: what a job says, and what is made of it. :mod:`.settings`,
:mod:`.layout`, :mod:`.query`, :mod:`.codebook` with :mod:`.codebook_makers`, :mod:`.statistics`, :mod:`.algorithm`,
:mod:`.rehearsal`: the algorithm in the clear. :mod:`.noise`, :mod:`.messages`, :mod:`.agreement`, :mod:`.stated`,
:mod:`.contents`, :mod:`.uploads`, :mod:`.evaluation`, :mod:`.relayed`, :mod:`.party`, :mod:`.computing`,
:mod:`.holder`, :mod:`.coordinator`, :mod:`.leakage`: the session. :mod:`.labels`: a session of its own that hands out
labels. :mod:`.plan` with :mod:`.forecaster` and :mod:`.traffic`; :mod:`.attack` with :mod:`.attack_views`.
"""

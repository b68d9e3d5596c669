"""Labels of aligned records, for the parties that a job grants them to: which cluster each record is in. Ours.

Centres and codebooks are already public (:mod:`cloister.protocols.vertical`); records may be those that were clustered
or new ones. Alice, who computes, knows her own columns, so she knows the label l_c(p) of record p IF its encrypted
columns are in cell c. Holders encrypt, record by record in slots, in which cell their columns are. She adds up, slot
by slot,

    sum_c l_c(p) 1_c(p) + pad(p)   modulo t = 65537,   pad(p) uniform,

and re-randomises and floods it. The key holder decrypts uniform numbers. A party that is granted labels gets these
numbers from the key holder and the pads from Alice; any other party lacks at least one of the two.

1. the key holder makes a key for this session alone (:mod:`.party`);
2. holders send their encrypted cells, some blocks at a time, and Alice masks their labels at once (:mod:`.masking`);
3. the key holder decrypts and sends the masked labels to those who are granted them.

Threat model: all roles are semi-honest, as in the clustering.

Who learns what:

==================  ===================  =========================
role                masked labels        labels of the records
==================  ===================  =========================
relay               no                   no
Alice               only if granted      only if granted
key holder          all: uniform         only if granted
others              only if granted      only if granted
==================  ===================  =========================

**Labels are not differentially private.** A label follows from the other parties' columns of that very record, with no
noise except that in the public centres and cells: it reveals in which part of space the record is.

**Breaks if**: Alice and the key holder collude: together they could decrypt every column's cell. A granted party and
either of them learn together what the granted one may know anyway.

**Costs**: for each record and cell log2(q) bits to Alice (twice that under another's key): 108 for up to about 30,000
records in 64 cells or 100,000 in 16, else 135. From her to the key holder 27 to 34 bytes per record; 17 bits per record
to each that is granted labels.

Reading order: :mod:`.agreement`, :mod:`.masking`, :mod:`.party`, :mod:`.session`.
Proof: docs/proofs/vertical-labels.md.
"""

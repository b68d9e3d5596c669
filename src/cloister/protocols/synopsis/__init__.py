"""Synopsis: private k-means of records that several parties hold; ours, and the default.

The parties release noisy statistics of the union of their records, each a sum of small integer vectors, one per
record, under masks that the coordinator cannot remove:

1. how many records there are, unless that is public;
2. where they are: zooming histograms of each column find its centre and spread, by which all later steps scale it
   (:mod:`.zoom`); or, with ``scale = "bounds"``, one cuts off the empty ends of bounds that are too wide (few columns),
   or a sum finds the middle (many). With many columns also the distances from the middle, and second moments, whose
   main axes span a subspace;
3. a histogram over a grid in that box, on the columns or in the subspace;
4. the cells of the histogram are clustered by their weights, which reads no record and costs nothing;
5. a few rounds of Lloyd's algorithm from there: each record's offset from its nearest centre, clipped to a radius, is
   summed with its square and the counts; the steps of centres are shrunk by their noise; a centre that is not
   needed moves to a cluster that is too wide.

One party, the leader, runs the algorithm (:mod:`.pipeline`) and states what is measured next; all others check each
question, derive its price, and answer. How large a record's vectors are in a round is that round's weight in the
budget; noise has one scale for the whole session. So whoever adds the noise needs to know nothing that was released.

Threat model: by default the parties add the noise, in shares, and an active coordinator together with up to
``colluding_max`` of them learns nothing of the others beyond epsilon. Where the coordinator adds the noise, all but the
leader are semi-honest, that is, curious, but following the protocol. The leader may state any question: it learns
nothing beyond the budget. It can waste the budget or state false centres. Nothing is promised against parties that lie
about their records.

Who learns what (the coordinator sees lengths that are public, and masked words):

===========  ====================  ==================  ===========
role         a party's statistics  totals of a round   centres
===========  ====================  ==================  ===========
coordinator  no                    no                  no
party        own                   DP                  DP
===========  ====================  ==================  ===========

Totals are read by whoever leads, and any party may come to; the others are told the result only.

Rounds that turn out not to be needed are sent as zeros under the same masks and noise: the coordinator cannot tell
which these were, nor how many rounds of Lloyd's algorithm there were, unless it times the answers: an idle round takes
parties less time. Who takes part and who drops out is public.

Breaks if: this depends on who adds the noise (:mod:`cloister.privacy.placement`). By default the parties do. From three
on they add shares of it, under double masks, which more than ``colluding_max`` of them can undo, with the coordinator
or without; two add all of it each, and nobody can. Where the coordinator adds the noise (beyond 300 parties by
default), it must never see the centres, and with any one party's help it can remove noise and masks.

Dropouts: a party that misses a round is asked again in the next; what it was charged stays charged. The others go on,
down to a quorum. If the leader is silent, the next in line replays what was stated and goes on. Behind each vector,
under the masks, go check words, a keyed hash of all sealed questions so far: if members answered different questions,
the leader sees it and states idle rounds and no result to the end; the coordinator cannot tell. There is a result only
with the signatures of a quorum on it.

Costs: 3 steps to agree on a seed and, with double masks, one to meet; two or three for each slot; one to state the
result, one to sign it, one to finish. By default the slots (``Settings.slots``) have 1 + 312 d + 6000 + 8 k (d + 2)
numbers for d <= 5, and 25 + 312 d + d (d + 3) / 2 + 6000 + 8 k (d + 2) beyond; with ``scale = "bounds"`` 16 d, or d +
1, for 312 d. A party sends 8 bytes for each number, plus some 60 bytes per slot, 16 of them check words; the leader
receives as many. A party receives the questions: some 200 bytes and 8 for each number in one, such as a centre's
coordinate. CPU: a signature to check and one pass over the records for each round that is needed; two masks to send, or
one for each other party; a fifth of a microsecond for each number with exact noise.

Reading order: :mod:`cloister.protocols.guided_sums`, :mod:`.questions`, :mod:`.zoom_questions`, :mod:`.settings`,
:mod:`.pipeline`; then its steps in order: :mod:`.zoom`, :mod:`.grid_plan` with :mod:`.extent`, :mod:`.histogram`,
:mod:`.choice_of_k`. :mod:`.protocol` is the protocol object.
"""

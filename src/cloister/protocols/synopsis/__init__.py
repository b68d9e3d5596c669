"""Synopsis: private k-means of records that several parties hold; ours, and the default.

The parties release noisy statistics of the union of their records, each a sum of small integer vectors, one per
record, under masks that the coordinator cannot remove:

1. how many records there are, unless that is public;
2. where they are: with few columns, a histogram of each column, which cuts off the empty ends of bounds that are too
   wide; with many, the middle of the records, their distances from it, and their second moments, whose main axes span
   a subspace;
3. a histogram over a grid in that box, on the columns or in the subspace;
4. the cells of the histogram are clustered by their weights, which reads no record and costs nothing;
5. a few rounds of Lloyd's algorithm from there: each record's offset from its nearest centre, clipped to a radius, is
   summed with its square and the counts; the steps of centres are shrunk by their noise; a centre that is not
   needed moves to a cluster that is too wide.

Every party runs the algorithm itself, on the same totals with the same common stream, and so knows what to measure
next (:mod:`.pipeline`). The size of a record's vectors in a round is the round's weight in the budget; noise has one
scale for the whole session. So whoever adds the noise needs to know nothing that was released.

Threat model: all roles are semi-honest: curious, but following the protocol. Nothing is promised against
parties that lie about their records.

Who learns what (the coordinator sees lengths that are public, and masked words):

===========  ====================  ==================  ===========
role         a party's statistics  totals of a round   centres
===========  ====================  ==================  ===========
coordinator  no                    no                  no
party        own                   DP                  DP
===========  ====================  ==================  ===========

Rounds that turn out not to be needed are sent as zeros under the same masks and noise. The coordinator cannot tell
which these were, nor how many rounds of Lloyd's algorithm there were, unless it times the answers: an idle round takes
parties less time. Who takes part and who drops out is public.

Breaks if: this depends on who adds the noise (``Agreement.breaks_if``). By default, the coordinator does: it must not
see the centres, and with any one party's help it can remove noise and masks.

Dropouts: a party that misses a round is not asked again, as it cannot know the next query; what it was charged remains
charged. The others go on, down to ``members_min``. Parties notice it themselves if they derive different queries from
the same totals (another processor, another library) or get different totals: under the masks, each vector is followed
by check words, a keyed hash of the query and of the total that it follows from, and a last round compares results. They
then go on with empty answers to the end and have no result; the coordinator cannot tell.

Costs: 3 steps to agree on a seed, one per slot, one to compare results, one to finish. By default the slots
(``Settings.slots``) have 1 + 16 d + 6000 + 8 k (d + 2) numbers for d <= 5, and 26 + d (d + 5) / 2 + 6000 + 8 k (d + 2)
beyond. A party sends and receives 8 bytes for each number, plus some 60 bytes per slot, 16 of them check words. CPU:
one pass over the records for each round that is needed; two masks to send, and two to read for each gap among the
party numbers; 10 to 30 microseconds for each number with exact noise.

Reading order: :mod:`cloister.protocols.guided_sums`, :mod:`.settings`, :mod:`.pipeline`; then its steps in order:
:mod:`.grid_plan` with :mod:`.extent`, :mod:`.histogram`, :mod:`.choice_of_k`. :mod:`.protocol` is the protocol object.
"""

from cloister.protocols.synopsis.pipeline import SynopsisFinding, run_synopsis
from cloister.protocols.synopsis.settings import Knobs, Settings

__all__ = ["Knobs", "Settings", "SynopsisFinding", "run_synopsis"]

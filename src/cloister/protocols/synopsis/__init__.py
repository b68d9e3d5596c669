"""Synopsis: private k-means of records that several parties hold; ours, and the default.

The parties release noisy statistics of the union of their records, each a sum of small integer vectors, one a record,
under masks that the coordinator cannot remove:

1. how many records there are, unless that is public;
2. where they lie: with few columns a histogram of each column, which cuts off the empty ends of bounds that are too
   wide; with many, the middle of the records, how far from it they are, and their second moments, whose main axes
   span a subspace;
3. a histogram over a grid in that box, on the columns or in the subspace;
4. the cells of the histogram are clustered by their weights: this looks at no record and costs nothing;
5. a few rounds of Lloyd's algorithm from there: each record's offset from its nearest centre, clipped to a radius, is
   summed with its square and the counts; the step that a centre makes is shrunk by what of it is noise; a centre that
   is not needed moves to a cluster that is too wide.

Every party runs the algorithm itself, on the same totals with the same common stream, and so knows what to measure
next (:mod:`.pipeline`). How large a record's vectors are in a round is that round's weight in the budget; noise has one
scale for the whole session. So whoever adds the noise needs to know nothing that was released.

Threat model: all roles are semi-honest, that is curious, but they follow the protocol. Nothing is promised against
parties that lie about their records.

Who learns what (the coordinator sees lengths that are public, and masked words):

===========  ====================  ==================  ===========
role         a party's statistics  totals of a round   centres
===========  ====================  ==================  ===========
coordinator  no                    no                  no
party        own                   DP                  DP
===========  ====================  ==================  ===========

Rounds that turn out not to be needed are sent as zeros under the same masks and noise: the coordinator cannot tell
which these were, nor how many rounds of Lloyd's algorithm there were, unless it times the answers: an idle round takes
a party less. Who takes part and who drops out is public.

Breaks if: it depends on who adds the noise (``Agreement.breaks_if``). By default the coordinator does: it must not see
the centres, and with any one party's help it can take the noise away and the masks off.

Dropouts: a party that misses a round is not asked again, for it cannot know the next question; what it was charged
stays charged. The others go on, down to ``members_min``. Parties that derive different questions from the same totals
(another processor, another library), or are told different totals, notice it themselves: behind each vector, under the
masks, go check words, a keyed hash of the question and of the total that it follows from, and a last round compares
what was found. They then go on with empty answers to the end and have no result; the coordinator cannot tell.

Costs: 3 steps to agree on a seed, one a slot, one to compare what was found, one to finish. Slots: ``Settings.slots``;
a party sends and receives 8 bytes a number of each, plus some 60 bytes, 16 of them check words: by default
1 + 16 d + 6000 + 8 k (d + 2) numbers for d <= 5, and 26 + d (d + 5) / 2 + 6000 + 8 k (d + 2) beyond. CPU: one pass over
the records a round that is needed; two masks to send and two to read for each gap among the party numbers; exact noise
some 10 to 30 microseconds a number.

Reading order: :mod:`cloister.protocols.guided_sums`, :mod:`.settings`, :mod:`.pipeline` with the steps that it is made
of (:mod:`.ground` with :mod:`.box`, :mod:`.middle`, :mod:`.axes` and :mod:`.grid`; :mod:`.start`; :mod:`.choice_of_k`),
:mod:`.session`.
"""

from cloister.protocols.guided_sums import (
    Agreement,
    NoBooks,
    Outcome,
    Rehearsal,
    SharedThinking,
    coordinate,
    envelope_of,
)
from cloister.protocols.synopsis.pipeline import Finding
from cloister.protocols.synopsis.session import CODEC, LEAKAGE, SynopsisParty, rehearse
from cloister.protocols.synopsis.settings import Knobs, Settings

__all__ = [
    "CODEC",
    "LEAKAGE",
    "Agreement",
    "Finding",
    "Knobs",
    "NoBooks",
    "Outcome",
    "Rehearsal",
    "Settings",
    "SharedThinking",
    "SynopsisParty",
    "coordinate",
    "envelope_of",
    "rehearse",
]

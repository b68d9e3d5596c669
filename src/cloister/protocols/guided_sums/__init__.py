"""Guided sums: rounds of integer vectors that are added up under masks; one party, the leader, says what is asked next.

This is what a private algorithm on horizontally split records needs, whatever it computes. The leader runs it on the
totals that have been released, and states each question, sealed to the parties and signed. A party checks the question,
derives its price itself, and answers with a sum over its records, in integers; the most that one unit can add to it is
known exactly. Noise has one scale for the whole session; a round's weight in the budget is how large contributions are
in it (`BUDGET_UNITS`). Whoever adds up, or adds the noise, learns nothing about what a round is for.

::

    step       coordinator ->                                  <- reply
    Lead       leader:   the rounds that it has not read yet   question: salt, box, signature
    Answer     members:  question, link of the chain           vector and check words, masked
    OpenTotal  members:  digest of the sum                     key of the own mask; with double masks only
    Lead       leader:   the last round                        result: salt, box, signature
    Sign       members:  result, link of the chain             signature on the chain's last link
    Finish     members:  all signatures                        ready

A leader that is silent, or cannot follow what was stated before, is passed over for the next. A party that was away is
asked again in the next round: a question needs no other.

Protocols built on it, each with its own wire name: :mod:`cloister.protocols.synopsis`,
:mod:`cloister.protocols.feddp`.

Reading order: :mod:`.settings`, :mod:`.query`, :mod:`.agreement`, :mod:`.statements`, :mod:`.messages`,
:mod:`.algorithm`, :mod:`.leader`, :mod:`.party`, :mod:`.coordinator`. Steps that algorithms share:
:mod:`.statistics`, :mod:`.postprocessing`, :mod:`.refinement`, :mod:`.scaling`.
"""

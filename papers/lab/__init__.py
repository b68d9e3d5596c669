"""What all papers share: the skeleton of an evaluation, and what more than one of them compares itself with.

Reading order: :mod:`.products` (what an artefact leaves behind), :mod:`.trials` (seeded runs on several processes),
:mod:`.paper` (what a paper is, and how it is reproduced), :mod:`.drawing`; then :mod:`.k_fed` and :mod:`.scores`.
"""

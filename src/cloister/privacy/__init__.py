"""Differential privacy: exact noise, one accountant, a ledger, and one door to a noisy value.

Reading order: :mod:`~cloister.privacy.units` (whose presence is hidden, budgets, sensitivities),
:mod:`~cloister.privacy.encoder` (what one record contributes, in integers), :mod:`~cloister.privacy.mechanisms` (noise
as data), :mod:`~cloister.privacy.samplers` (drawing it), :mod:`~cloister.privacy.placement` (who adds it),
:mod:`~cloister.privacy.costs`, :mod:`~cloister.privacy.zcdp` and :mod:`~cloister.privacy.accounting` (what it costs),
:mod:`~cloister.privacy.calibration` (how much is needed), :mod:`~cloister.privacy.release` (the one door),
:mod:`~cloister.privacy.ledger` (what was ever spent), :mod:`~cloister.privacy.card` (what a result promises).
"""

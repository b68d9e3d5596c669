"""Differential privacy: exact noise, one accountant, a ledger, and one door to a noisy value.

Reading order: :mod:`~cloister.privacy.units` (whose presence is hidden, budgets, sensitivities, who learns what),
:mod:`~cloister.privacy.encoder` (what one record contributes, in integers), :mod:`~cloister.privacy.mechanisms` (noise
as data), :mod:`~cloister.privacy.samplers` (drawing it), :mod:`~cloister.privacy.placement` (who adds it),
:mod:`~cloister.privacy.costs`, :mod:`~cloister.privacy.privacy_loss` and :mod:`~cloister.privacy.accounting` (what it
costs), :mod:`~cloister.privacy.calibration` (how much is needed), :mod:`~cloister.privacy.release` (the one door),
:mod:`~cloister.privacy.ledger` (what was ever spent), :mod:`~cloister.privacy.card` (what a result promises),
:mod:`~cloister.privacy.books` (what one party charges in a job).

Sections cited as "thesis" are of Ahmed, "Differentially-Private Multiparty Clustering" (2023), those cited as
"FastLloyd" of Diaa, Humphries and Kerschbaum, "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering
with Differential Privacy" (2024).
"""

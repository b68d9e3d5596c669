"""Noise that nobody knows: discrete Laplace variables sampled inside secure computation (FastLloyd 7.2, thesis 7.3.2).

n parties end with additive shares, in the ring, of a vector of independent discrete Laplace variables. The sample is a
difference of two geometric variables; their binary digits are independent and have public biases; a digit is a
comparison of shared uniform bits with a public threshold, computed by GMW with dealt triples, 64 comparisons in a word.

Threat model: everyone follows the protocol (semi-honest). The dealer knows no inputs and receives nothing.

======================================  =============================================================
who                                     learns of the noise
======================================  =============================================================
up to n - 1 parties                     nothing: what they hold and all openings are independent
the dealer                              nothing, as long as no opening reaches it
the dealer and any one party            everything
all parties                             everything
======================================  =============================================================

The vector is within 2^-80 of exact noise in total variation. Costs are properties of the plan; the proofs are in
docs/proofs/joint-noise.md. Nothing depends on records, so a sample can be made before it is needed.

Reading order: :mod:`~cloister.joint_noise.plan` (the law, and what is public), :mod:`~cloister.joint_noise.comparison`
(the circuit), :mod:`~cloister.joint_noise.dealing` (the dealer), :mod:`~cloister.joint_noise.sampler` (a party).

Sections cited as "thesis" are of Ahmed, "Differentially-Private Multiparty Clustering" (2023), those cited as
"FastLloyd" of Diaa, Humphries and Kerschbaum, "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering
with Differential Privacy" (2024).
"""

from cloister.joint_noise.dealing import deal
from cloister.joint_noise.plan import JointLaplace
from cloister.joint_noise.sampler import JointSampler

__all__ = ["JointLaplace", "JointSampler", "deal"]

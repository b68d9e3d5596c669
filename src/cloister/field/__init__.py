"""Exact computing on shares: prime fields and Lagrange coding.

For SecFC: Li, Hou, Buyukates, Avestimehr, "Secure Federated Clustering" (2022), section 4 and appendix A.

A session chooses a :class:`Field` from public bounds (:func:`choose_field`) and a :class:`LagrangeCode` over it. A
record's owner *shares* it; every client holds :class:`CodedRecords`, sums them by cluster and *measures* coded
distances; the server adds up weighted replies, *decodes* :class:`Distances` and finds the nearest centre of each record
(:func:`find_nearest`), exactly. Whoever holds l + t clients' shares of a sum can *reveal* it.

What is proved, and on which page: docs/proofs/lagrange-sharing.md.

Reading order: :mod:`~cloister.field.prime_field` (elements, and how large a field),
:mod:`~cloister.field.lagrange` (the code), :mod:`~cloister.field.coded_records` (a client's round),
:mod:`~cloister.field.distances` (the server's), then the compiled loops in :mod:`~cloister.field.kernels`.
"""

from cloister.field.coded_records import CodedRecords
from cloister.field.distances import Distances, find_nearest
from cloister.field.kernels import Words
from cloister.field.lagrange import LagrangeCode
from cloister.field.prime_field import FIELD61, FIELD122, Field, choose_field, largest_distance, largest_sum, most_bits

__all__ = [
    "FIELD61",
    "FIELD122",
    "CodedRecords",
    "Distances",
    "Field",
    "LagrangeCode",
    "Words",
    "choose_field",
    "find_nearest",
    "largest_distance",
    "largest_sum",
    "most_bits",
]

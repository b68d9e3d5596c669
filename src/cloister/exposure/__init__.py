"""What runs leave behind besides what they release: pairs of whole simulations that must show the same.

Reading order: :mod:`cloister.audit.whole_view` (what is tested, and why that is enough), ``neighbours`` (the tables),
``runs`` (the pairs).
"""

from cloister.exposure.runs import compare_everything

__all__ = ["compare_everything"]

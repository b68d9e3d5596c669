"""What FedDP-KMeans prints, transcribed: Tables 1 to 5 (appendix G), and what section 5 says.

"Differentially Private Federated k-Means with Server-Side Data", the anonymous submission that Jonathan Scott,
Christoph H. Lampert and David Saulpic published in 2025. The figures themselves are pictures without numbers in the
text.
"""

from __future__ import annotations

TABLE_1: dict[str, float] = {
    "Gaussian Mixture (100 clients)": 10.57,
    "US Census (Not-for-profit Employees)": 2.65,
    "US Census (Federal Employees)": 2.65,
    "US Census (Self-Employed)": 2.65,
}
"""The radius of each data set (G.2)."""

TABLE_2: dict[str, tuple[float, ...]] = {
    "Gaussian Mixture (100 clients)": (0.18, 0.23, 0.43, 0.17),
    "US Census (Not-for-profit Employees)": (0.24, 0.17, 0.41, 0.18),
    "US Census (Federal Employees)": (0.15, 0.16, 0.52, 0.17),
    "US Census (Self-Employed)": (0.20, 0.23, 0.47, 0.10),
}
"""Shares of epsilon_init for epsilon_1, epsilon_2, epsilon_3G and epsilon_3L, data-point level."""

TABLE_3: dict[str, tuple[float, ...]] = {
    "Gaussian Mixture (1000 clients)": (0.38, 0.09, 0.42, 0.10),
    "Gaussian Mixture (2000 clients)": (0.43, 0.10, 0.36, 0.11),
    "Gaussian Mixture (5000 clients)": (0.43, 0.09, 0.37, 0.11),
    "Stack Overflow (facebook, hibernate)": (0.29, 0.15, 0.42, 0.15),
    "Stack Overflow (github, pdf)": (0.37, 0.12, 0.40, 0.10),
    "Stack Overflow (machine-learning, math)": (0.29, 0.14, 0.45, 0.13),
    "Stack Overflow (plotting, cookies)": (0.33, 0.11, 0.47, 0.09),
}
"""The same, client level."""

TABLE_4: dict[str, tuple[float, ...]] = {
    "Gaussian Mixture (100 clients)": (0.61, 0.39, 0.0),
    "US Census (Not-for-profit Employees)": (0.8, 0.1, 0.1),
    "US Census (Federal Employees)": (0.91, 0.09, 0.0),
    "US Census (Self-Employed)": (0.92, 0.08, 0.0),
}
"""Share of Pareto-optimal results with 0, 1 and 2 steps of FedDP-Lloyds, data-point level."""

TABLE_5: dict[str, tuple[float, ...]] = {
    "Gaussian Mixture (1000 clients)": (0.86, 0.11, 0.04),
    "Gaussian Mixture (2000 clients)": (0.8, 0.17, 0.03),
    "Gaussian Mixture (5000 clients)": (0.81, 0.1, 0.1),
    "Stack Overflow (facebook, hibernate)": (1.0, 0.0, 0.0),
    "Stack Overflow (github, pdf)": (1.0, 0.0, 0.0),
    "Stack Overflow (machine-learning, math)": (0.94, 0.06, 0.0),
    "Stack Overflow (plotting, cookies)": (0.96, 0.04, 0.0),
}
"""The same, client level."""

RECOMMENDED_RECORD = (0.2, 0.2, 0.45, 0.15)
RECOMMENDED_CLIENT = (0.35, 0.1, 0.45, 0.1)
"""The splits that G.4 recommends."""

SENTENCES = (
    "FedDP-KMeans is able to match the optimal (non-private) performance",
    "The non-private k-FED also performs optimally",
    "performance plateauing even as the privacy",
    "k-FED performs quite",
)
"""What section 5 says of figures 1, 2, 5 and 6; docs/reproduction-feddp.md answers each."""

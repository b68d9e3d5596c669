"""Mutants: small faults planted in a copy of the sources, each of which some test must notice.

``operators`` finds the places where a fault of this field can be planted; ``named`` holds the ones that a reader once
planted and no test noticed; ``choice`` draws some by a seed, says which tests come first and lists the ones proved to
change nothing; ``trial`` plants one in a copy of the tree and runs the tests there; ``__main__`` is the command.
"""

"""The data of the papers: generators, splits, and readers of public files."""

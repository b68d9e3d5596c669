"""The data of the papers: where files are found, readers of public ones, generators, and ways to deal records out.

Nothing is downloaded. A data folder is given with ``--data`` or ``CLOISTER_DATA``; the default is ``shared/data``
beside the checkout. In it are::

    iris.txt s1.txt birch2.txt lsun.txt house.txt adult.txt    numbers with blanks between, one record a line
    mnist/           MNIST's IDX files, gzipped or not             (papers.data.digits)
    folktables/      the Census Bureau's person files of 2018      (papers.data.census)
    stackoverflow/   embedded questions, Parquet                   (papers.data.questions)

Whatever is missing is named and left out. docs/reproduction-*.md say how to get each.
"""

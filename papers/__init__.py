"""The papers that Cloister builds on, evaluated again: ``python -m papers fastlloyd | secfc | feddp``.

Not part of the package. :mod:`.lab` has the skeleton that all papers share, :mod:`.data` their data sets; each paper's
own folder has its trials, what its text prints, its figures and tables, and ``PAPER``, which lists them.
"""

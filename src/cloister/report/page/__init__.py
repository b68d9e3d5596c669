"""The report as one HTML page that needs nothing else: no request, no font, no library; readable without its script.

The order is that of the questions of a reader: what was asked and how it ran, the groups, what is promised, what it
cost, who learned what, how sure one can be, how to do it again. Notebooks show the same blocks.

Reading order: :mod:`.html`, :mod:`.view`, :mod:`.marks`; the blocks :mod:`.groups`, :mod:`.figures`, :mod:`.promise`,
:mod:`.course`; :mod:`.build`.
"""

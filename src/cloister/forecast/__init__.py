"""The building blocks of protocols' forecasts. They open no table.

Reading order: ``model`` (what a forecast holds), ``families`` (made-up records), ``trials`` (how much is tried, and
compared with what), ``visibility`` (the smallest cluster), ``traffic`` (hollow sessions that count bytes),
``placements`` (who could add the noise, and what each choice costs), ``advice`` (conclusions in words).
"""

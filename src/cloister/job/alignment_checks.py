"""What must hold for the alignment of a vertical job: which rows of the parties' tables belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.job.problems import check_choice, refuse, show_value
from cloister.job.secfc_checks import check_id_column
from cloister.protocols.align import ID_KINDS

if TYPE_CHECKING:
    from cloister.job.model import Job

FORM_KEYS = ("id_form", "id_trim", "id_ignore_case")


def check_alignment(job: Job) -> None:
    """Refuse a job that does not say which rows belong together, or says it twice."""
    data = job.data
    for key in ("id_trim", "id_ignore_case", "aligned"):
        value = getattr(data, key)
        if value is not None and not isinstance(value, bool):
            refuse(("data", key), "be true or false", show_value(value))
    _check_files(job)
    if data.id is not None:
        if data.aligned:
            refuse(("data", "id"), "be left out with aligned = true", show_value(data.id), "Remove one of them.")
        check_id_column(job)
        _check_form(job)
        return
    if not data.aligned:
        what_to_do = (
            'Write id = "COLUMN" to align them privately by that column first; or aligned = true if row i is the same '
            "record in every table."
        )
        refuse(("data",), "say which rows of the tables belong together", "neither id nor aligned", what_to_do)
    for key in FORM_KEYS:
        if getattr(data, key) is not None:
            refuse(("data", key), "come with id", "none", "Remove it.")


def _check_files(job: Job) -> None:
    """Refuse alignments that not all have, or that nothing could be held against."""
    holders = [(i, party) for i, party in enumerate(job.parties) if party.columns]
    if all(party.alignment is None for _, party in holders):
        return
    for i, party in holders:
        if party.alignment is None:
            what_to_do = "Run: cloister align JOB.TOML --id COLUMN --out FOLDER. It writes one for each."
            refuse(("parties", i, "alignment"), "be given for every party or for none", "none", what_to_do)
        if not isinstance(party.alignment, str) or not party.alignment.strip():
            refuse(("parties", i, "alignment"), "be the path of a file", show_value(party.alignment))
        if job.data.aligned:
            what_to_do = "Rows stand in the same order, or in that of the files: remove one of them."
            refuse(
                ("parties", i, "alignment"), "be left out with aligned = true", show_value(party.alignment), what_to_do
            )
    if job.data.id is None:
        what_to_do = "It tells whether the tables are still those that were aligned: name the column of IDs."
        refuse(("data", "id"), "be given with alignments", "none", what_to_do)


def _check_form(job: Job) -> None:
    """Refuse a form of IDs that there is not: the rules of ``NormalForm``, told with the key."""
    data = job.data
    kind = "text" if data.id_form is None else data.id_form
    check_choice(("data", "id_form"), kind, ID_KINDS)
    if data.id_trim and kind == "raw":
        refuse(("data", "id_trim"), "come with text or integer IDs", show_value(kind), "Remove it.")
    if data.id_ignore_case and kind != "text":
        refuse(("data", "id_ignore_case"), "come with text IDs", show_value(kind), "Remove it.")

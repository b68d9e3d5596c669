"""Persons as the unit of a job: the keys of ``[data]`` that say who is one, and the budget that follows from them."""

from __future__ import annotations

from typing import Any, NoReturn

from cloister.job.refusals import check_integer, check_text, refuse, show_value
from cloister.privacy.units import PERSON_RECORDS_MOST, Budget, PersonBudget, Unit

Job = Any
"""A `cloister.job.Job`, which is built on this module."""

PERSON_KEYS = ("person", "person_records", "person_parties")


def count_persons(job: Job) -> Budget | None:
    """Return a job's budget; where the unit is a person, with how many records of each count at how many parties.

    Where columns are split, an aligned ID is a person, and has one record.
    """
    budget: Budget | None = job.budget
    data = job.data
    if budget is None or budget.unit is not Unit.PERSON:
        _refuse_keys(job)
        return budget
    records = parties = 1
    if job.protocol.facts.split == "columns":
        _check_aligned(job)
    else:
        _check_column(job)
        parties = len(job.parties)
        if data.person_parties is not None:
            check_integer(("data", "person_parties"), data.person_parties, 1, parties)
            parties = data.person_parties
        if data.person_records is not None:
            check_integer(("data", "person_records"), data.person_records, 1, PERSON_RECORDS_MOST)
            records = data.person_records
    return PersonBudget(epsilon=budget.epsilon, delta=budget.delta, records=records, parties=parties)


def refuse_persons(job: Job, given: str) -> None:
    """Refuse the unit person where a text's noise is for one record; ``given`` says with which key."""
    if job.budget is not None and job.budget.unit is Unit.PERSON:
        what_to_do = "Its text bounds what one record adds, not a person's several: use the default variant."
        refuse(("budget", "unit"), f"not be person {given}", '"person"', what_to_do)


def _refuse_keys(job: Job) -> None:
    for key in PERSON_KEYS:
        value = getattr(job.data, key)
        if value is not None:
            what_to_do = 'Write: [budget] unit = "person". Otherwise one record is what is protected, and not a person.'
            refuse(("data", key), "come with the unit person", show_value(value), what_to_do)


def _check_column(job: Job) -> None:
    name = job.data.person
    if name is None:
        _refuse_unit("person", 'Name the column that says whose a record is: [data] person = "patient_id".')
    check_text(("data", "person"), name, longest=200)
    if name in {column.name for column in job.columns}:
        must = "be a column that is not clustered"
        refuse(("data", "person"), must, show_value(name), "Remove it from [columns].")


def _refuse_unit(key: str, what_to_do: str) -> NoReturn:
    refuse(("budget", "unit"), f"come with data.{key}, the column of IDs", '"person" without it', what_to_do)


def _check_aligned(job: Job) -> None:
    for key in PERSON_KEYS:
        value = getattr(job.data, key)
        if value is not None:
            what_to_do = 'Records are aligned by their IDs, and each ID is a person: write id = "patient_id" instead.'
            refuse(("data", key), "be left out where columns are split", show_value(value), what_to_do)
    if job.data.id is None:
        _refuse_unit("id", 'An aligned ID is a person: write [data] id = "patient_id".')

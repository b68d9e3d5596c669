"""Other organisations' public files: found by the identities that a job names, whatever the files are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from cloister.credentials.keys import PUBLIC_SUFFIX, PublicKeyFile, load_public
from cloister.errors import CredentialsError

_MOST_NAMED = 5


def find_public_files(
    wanted: Mapping[str, bytes], places: Sequence[Path], *, now: datetime | None = None, may_miss: bool = False
) -> dict[str, PublicKeyFile]:
    """Return each participant's public file; of several for one identity, that with the latest certificate.

    Parameters
    ----------
    wanted
        Identities by the names that a job gives them.
    places
        Public files, and folders of them. A file for an identity that is not wanted is ignored.
    now
        The time, by default the clock's.
    may_miss
        Whether some may have none: they use the connections of others.

    Raises
    ------
    CredentialsError
        If one is missing or has expired; names whose, and the files that could not be read.
    """
    found: dict[bytes, PublicKeyFile] = {}
    unreadable: list[str] = []
    for path in [path for place in places for path in _list_files(place)]:
        try:
            public = load_public(path, any_date=True)
        except CredentialsError as error:
            unreadable.append(str(error))
            continue
        known = found.get(public.identity)
        if known is None or known.chain.valid_until < public.chain.valid_until:
            found[public.identity] = public
    missing = [name for name, identity in wanted.items() if identity not in found]
    if missing and not may_miss:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        where = ", ".join(map(str, places)) or "no place"
        raise CredentialsError(
            f"there must be a public file for each identity in the job; there is none for "
            f"{', '.join(missing[:_MOST_NAMED])}{more} in {where}. Ask them for their NAME.pub and put it there."
            + "".join(f" Not readable: {one}" for one in unreadable[:_MOST_NAMED])
        )
    chosen = {name: found[identity] for name, identity in wanted.items() if identity in found}
    for public in chosen.values():
        public.check_dates(now)
    return chosen


def list_public_files(places: Sequence[Path]) -> list[PublicKeyFile]:
    """Read public files, and all in folders; each must be readable and valid now."""
    return [load_public(path) for place in places for path in _list_files(place)]


def _list_files(place: Path) -> list[Path]:
    return sorted(place.glob(f"*{PUBLIC_SUFFIX}")) if place.is_dir() else [place]

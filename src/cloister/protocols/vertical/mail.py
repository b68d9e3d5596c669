"""A party's mail: boxes for all parties or for one, each for one stage of the session; the coordinator reads none."""

from __future__ import annotations

from collections.abc import Mapping

from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.errors import RemoteProtocolError
from cloister.protocols.vertical.messages import Letter, Turn


class Mail:
    """What a party seals and opens with.

    Parameters
    ----------
    number
        This party's.
    session
        Which session this is.
    seed
        Common to all parties.
    secrets
        What this party shares with each other one, by number.
    """

    def __init__(self, *, number: int, session: bytes, seed: bytes, secrets: Mapping[int, bytes]) -> None:
        self._number, self._session = number, session
        self._seed, self._secrets = seed, secrets

    def seal_post(self, content: bytes, stage: int) -> bytes:
        """Seal something for all parties; once a stage."""
        return seal_keyed(content, self._seed, "post", self._session, stage, self._number)

    def seal_letter(self, content: bytes, stage: int, recipient: int) -> Letter:
        """Seal something for one party; once a stage and recipient."""
        box = seal_keyed(content, self._secrets[recipient], "letter", self._session, stage, self._number, recipient)
        return Letter(self._number, recipient, stage, box)

    def open_posts(self, turn: Turn) -> dict[tuple[int, int], bytes]:
        """Open a turn's posts; by stage and author.

        Raises
        ------
        RemoteProtocolError
            If one is not what its author posted in that stage.
        """
        return {
            (post.stage, post.author): open_keyed(post.box, self._seed, "post", self._session, post.stage, post.author)
            for post in turn.posts
        }

    def open_letters(self, turn: Turn) -> dict[tuple[int, int], bytes]:
        """Open a turn's letters; by stage and sender.

        Raises
        ------
        RemoteProtocolError
            If one is not to us, or not what its sender wrote in that stage.
        """
        opened = {}
        for letter in turn.letters:
            secret = self._secrets.get(letter.sender)
            if letter.recipient != self._number or secret is None:
                raise RemoteProtocolError("a letter must come from another party and be addressed to us; one is not.")
            opened[letter.stage, letter.sender] = open_keyed(
                letter.box, secret, "letter", self._session, letter.stage, letter.sender, self._number
            )
        return opened

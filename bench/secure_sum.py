"""CPU and bytes per party and round of a secure sum with double masks, beyond measuring the records.

Run: ``python -m bench.secure_sum [--parties 3 16 64 300] [--length 500]``. The bound of the design page is 1 ms and
0.1 ms for each other party. Whoever reads a total also takes all masks off it: that is counted.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Sequence

import numpy as np

from cloister.aggregation import SumTerms, pack_members
from cloister.aggregation.double_masks import DoubleMasks
from cloister.aggregation.messages import Answered, Attempt, Opened, OpenTotal, PartyBox, Total
from cloister.aggregation.statements import Place, digest_body, read_words, write_words
from cloister.crypto import Identity, SeededEntropy
from cloister.job.noise_options import default_colluding_max, default_quorum
from cloister.numeric import RING32
from cloister.roles import Seat
from cloister.wire.codec import SESSION_BYTES

SEED, SESSION = bytes(32), bytes(SESSION_BYTES)
ROUNDS = 5


def pair_secret(one: int, other: int) -> bytes:
    """Stand in for the Diffie-Hellman secret of two parties, which is made once in a session."""
    return hashlib.sha256(repr(sorted((one, other))).encode()).digest()


def make_terms(parties: int, *, all_stay: bool) -> tuple[SumTerms, list[Identity]]:
    """Return the terms of so many parties with the default coalition, and their identities."""
    identities = [Identity(SeededEntropy(1, f"identity {number}")) for number in range(parties)]
    colluding = default_colluding_max(parties)
    terms = SumTerms(
        digest=b"bench",
        directory=tuple(identity.public_bytes for identity in identities),
        ring=RING32,
        members_min=parties if all_stay else default_quorum(parties, colluding),
        colluding_max=colluding,
    )
    return terms, identities


def measure(parties: int, length: int, *, all_stay: bool) -> dict[str, float]:
    """Return milliseconds of CPU and bytes of the first party in a round."""
    terms, identities = make_terms(parties, all_stay=all_stay)
    numbers = range(1, parties + 1)
    masks = {
        number: DoubleMasks(
            seat=Seat(
                number=number,
                identity=identities[number - 1],
                entropy=SeededEntropy(2, f"party {number}"),
                session=SESSION,
            ),
            terms=terms,
            seed=SEED,
            pair_secrets={other: pair_secret(number, other) for other in numbers if other != number},
        )
        for number in numbers
    }
    place = Place(link=b"link", subject=b"subject")
    vector = np.zeros(length, dtype=np.uint32)
    spent: dict[str, list[float]] = {"answer": [], "open": [], "read": []}
    for round_ in range(1, ROUNDS + 1):
        attempt = Attempt(round_, 1, pack_members(numbers, parties))
        answers: dict[int, Answered] = {}
        opened: dict[int, Opened] = {}
        for number in numbers:
            started = time.process_time()
            answers[number] = masks[number].answer(attempt, place, lambda: vector)
            if number == 1:
                spent["answer"].append(time.process_time() - started)
        words = length + terms.check_words
        body = write_words(terms.ring.sum([read_words(reply.vector, terms.ring, words) for reply in answers.values()]))
        for number in numbers:
            started = time.process_time()
            reply = masks[number].handle(OpenTotal(attempt, digest_body(body)))
            assert isinstance(reply, Opened)
            opened[number] = reply
            if number == 1:
                spent["open"].append(time.process_time() - started)
        total = Total(attempt, body, tuple(PartyBox(number, reply.box) for number, reply in opened.items()))
        started = time.process_time()
        assert not masks[1].read(total, place, length).elements.any()
        spent["read"].append(time.process_time() - started)
    milliseconds = {step: 1e3 * float(np.median(seconds)) for step, seconds in spent.items()}
    sent = len(answers[1].vector) + sum(8 + len(s.box) for s in answers[1].shares) + len(opened[1].box + opened[1].vote)
    received = len(total.body) + sum(8 + len(box.box) for box in total.openings) + 32 + len(attempt.members)
    return {**milliseconds, "cpu": sum(milliseconds.values()), "sent": sent, "received": received}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=[3, 16, 64, 300])
    parser.add_argument("--length", type=int, default=500)
    given = parser.parse_args(arguments)
    print(
        f"{'parties':>8} {'quorum':>8} {'answer':>8} {'open':>6} {'read':>6} {'CPU ms':>8} {'bound':>6} "
        "bytes sent, received"
    )
    for parties in given.parties:
        for all_stay in (True, False):
            if not all_stay and default_quorum(parties, default_colluding_max(parties)) == parties:
                continue
            row = measure(parties, given.length, all_stay=all_stay)
            bound = 1.0 + 0.1 * (parties - 1)
            print(
                f"{parties:>8} {'all' if all_stay else 'less one':>8} {row['answer']:>8.2f} {row['open']:>6.2f} "
                f"{row['read']:>6.2f} {row['cpu']:>8.2f} {bound:>6.1f} {row['sent']:,.0f}, {row['received']:,.0f}"
            )


if __name__ == "__main__":
    main()

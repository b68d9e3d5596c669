"""Rounds without a server: the parties add up among themselves; the simulation's coordinator only carries messages."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.errors import LocalProtocolError
from cloister.job.checks import COORDINATOR
from cloister.kmeans.assignment import Assignment
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.protocols.multiparty_lloyd import Agreement, Walker
from cloister.protocols.serverless import CODEC, JointNoise, RingParty, Terms, relay
from cloister.records import FloatArray
from cloister.simulation.stage import Stage, Walked, find_common_centres
from cloister.simulation_desks import Desks


class _Finisher:
    """A ring party with its walker: what it ended with."""

    def __init__(self, party: RingParty, walker: Walker) -> None:
        self._party, self.walker = party, walker

    @property
    def finished(self) -> bool:
        """Whether it has the final centres."""
        return self._party.finished

    @property
    def centres(self) -> FloatArray:
        """The final centres."""
        if self.walker.centres is None:
            raise LocalProtocolError("the session must have begun before it has centres; it has not")
        return self.walker.centres


def make_terms(agreement: Agreement) -> Terms:
    """Translate an agreement on Lloyd's rounds into the terms of a serverless sum."""
    agreement.require_ring()
    plan = agreement.noise
    joint = None
    if plan is not None and plan.placement.sampled_jointly:
        (target,) = set(plan.targets)
        assert isinstance(target, DiscreteLaplace)  # the job was checked
        joint = JointNoise(scale=target.scale)
    return Terms(
        digest=agreement.digest,
        directory=agreement.directory,
        rounds=agreement.iterations,
        length=agreement.length,
        ring=agreement.ring,
        members_min=max(2, agreement.members_min),
        restorers_min=0 if plan is None else plan.placement.restorers_min(agreement.parties),
        joint=joint,
    )


def walk_in_ring(stage: Stage, agreement: Agreement, assignment: Assignment, desks: Desks | None) -> Walked:
    """Run the rounds in a ring."""
    terms = make_terms(agreement)
    walkers = [
        Walker(
            agreement=agreement,
            records=table,
            assignment=assignment,
            duty=None if desks is None else desks.of_party(number),
        )
        for number, table in enumerate(stage.tables, start=1)
    ]
    parties = [
        RingParty(
            number=number,
            terms=terms,
            walker=walker,
            identity=identity,
            entropy=stage.make_entropy(f"party {number}"),
            session=stage.session,
        )
        for number, (walker, identity) in enumerate(zip(walkers, stage.identities, strict=True), start=1)
    ]
    run = stage.run(relay(terms, entropy=stage.make_entropy(COORDINATOR), session=stage.session), parties, CODEC)
    ends: Sequence[_Finisher] = [_Finisher(*pair) for pair in zip(parties, walkers, strict=True)]
    return Walked(
        run=run,
        centres=find_common_centres(ends),
        released_counts=next((end.walker.released_counts for end in ends if end.finished), None),
    )

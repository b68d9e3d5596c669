"""The errors of answers over joint cells stay below the bound that their floods are sized by, constants included."""

import numpy as np
import pytest

from cloister.lattice.weighted_sums import mirror_weights, sum_bodies
from cloister.protocols.vertical.computing import ComputingParty
from cloister.protocols.vertical.evaluation import evaluate_query
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.query import LloydQuery
from tests.protocols.vertical.sessions import Session

HOLDERS = []
WORST = []


class OpenHolder(HolderParty):
    """A key holder whose secret the test may read."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        HOLDERS.append(self)


class OpenAlice(ComputingParty):
    """Opens every answer before it is flooded, with everyone's secrets, and keeps the largest error."""

    def _compute(self):
        agreement, query = self._agreement, self.inquiry.query
        parameters = agreement.parameters
        masks, bodies = evaluate_query(
            query,
            parameters=parameters,
            blocks=self._receiver.blocks,
            alice=self._columns,
            alice_cells=self._cells,
            reps=self.codebooks.reps,
            residuals=False,
            in_slots=True,
        )
        secret = sum(holder._keys.ternary.astype(np.int64) for holder in HOLDERS if holder._keys is not None)
        rows = np.repeat(mirror_weights(secret).astype(np.int32), len(masks), axis=0)
        phases = sum_bodies(parameters.ring, masks[:, None], rows, np.arange(len(masks)), secrets=1)[:, 0]
        rest = parameters.ring.to_integers(parameters.ring.subtract(bodies.T, phases.T).T)
        delta = parameters.delta
        errors = [abs(int(x) - delta * ((2 * int(x) + delta) // (2 * delta))) for x in rest]
        if isinstance(query, LloydQuery):
            WORST.append((max(errors), int(np.abs(query.constants).max())))
        return super()._compute()


@pytest.mark.parametrize(("model", "exact"), [("server-aided", False), ("collective", True)])
def test_errors_of_sums_with_large_constants_are_below_the_bound(model, exact):
    HOLDERS.clear()
    WORST.clear()
    table = np.rint(np.random.default_rng(1).uniform(-1, 1, (600, 3)) * 2**16) / 2**16
    options = {"budget": None} if exact else {}
    session = Session(
        table,
        ((0,), (1,), (2,)),
        model=model,
        start="random",
        rounds=1,
        clusters=2,
        cells=8,
        alice=OpenAlice,
        holder=OpenHolder,
        **options,
    )
    session.run()
    ((worst, constant),) = WORST
    assert constant > 50  # the errors of a sum are multiplied by its constants
    assert worst < session.agreement.plan.error_bound
    assert 2**session.agreement.smudge_bits > 2**40 * worst

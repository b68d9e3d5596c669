"""Guided sums with one thing removed: a check, a range of a question, a part of its price, a rule of who says what."""

from __future__ import annotations

import ast

from tests.mutants import Package

CHECKERS = {"require", "require_length", "find_reach", "require_members", "check_stated", "_check_link", "expect"}
PROTOCOLS = Package("cloister.protocols", frozenset(CHECKERS))
ROLES = tuple(f"guided_sums.{name}" for name in ("statements", "party", "leader", "coordinator"))
KINDS = (
    *(f"guided_sums.{name}" for name in ("query", "statistics", "refinement", "algorithm", "scaling")),
    "synopsis.questions",
    "synopsis.zoom_questions",
    "feddp.questions",
    "feddp.published_questions",
)
"""Where kinds of questions are."""


def find_mutants():
    """All of them."""
    yield from PROTOCOLS.find_checks(*ROLES, *KINDS)
    yield from PROTOCOLS.find_calls(take_anything, *KINDS)
    prices = PROTOCOLS.find_calls(halve_price, *KINDS)
    yield from (mutant for mutant in prices if mutant.function != "Sizes.form")  # clients are scaled to the price
    yield from find_rules()


def take_anything(call):
    """What is read of a question without a look at its range."""
    name, args = ast.unparse(call.func), [ast.unparse(part) for part in call.args]
    if name in ("take_points", "take_lengths"):
        return f"{args[1]} in range", parse(f"{args[1]}.to_numpy({', '.join(['np.float64', *args[2:]])}).copy()")
    return (f"rows of {args[1]}", parse(f"{args[1]}.shape[0]")) if name == "count_rows" else None


def halve_price(call):
    """A kind whose answers may be longer than what is paid for."""
    said = {part.arg: ast.unparse(part.value) for part in call.keywords}
    price = said.get("l2_squared", "0")
    if ast.unparse(call.func) != "Form" or price in ("0", "form.l2_squared"):
        return None
    said["l2_squared"] = f"({price}) // 2"
    return "half the price", parse(f"Form({', '.join(f'{name}={value}' for name, value in said.items())})")


def parse(expression):
    return ast.parse(expression, mode="eval").body


def find_rules():
    """What questions, links and signatures are bound to, and what is remembered."""
    statements, party = "guided_sums.statements", "guided_sums.party"
    contexts = {
        "_signed": ("'guided sums question'", "session", "round_", "leader", "salt", "box"),
        "next_link": ("link", "round_", "stated.leader", "stated.salt", "stated.box"),
        "first_link": ("agreement", "session"),
        "name_result": ("link",),
        "sign_result": ("self.session",),
    }
    for function, texts in contexts.items():
        yield from PROTOCOLS.find_contexts(statements, function, *texts)
    replaced = PROTOCOLS.replaced
    yield replaced(
        statements, "seed under a result", ("derive_key(self.seed, RESULT_VOTE", 'derive_key(b"seed", RESULT_VOTE')
    )
    sealed, opened = (
        '("question", self.session, round_, leader, salt)',
        '"question", self.session, round_, stated.leader',
    )
    for without, one, other in (
        ("session around a question", '("question", round_, leader, salt)', '"question", round_, stated.leader'),
        (
            "round around a question",
            '("question", self.session, leader, salt)',
            '"question", self.session, stated.leader',
        ),
        ("leader around a question", '("question", self.session, round_, salt)', '"question", self.session, round_'),
    ):
        yield replaced(statements, without, (sealed, one), (opened, other))
    yield replaced(
        statements,
        "salt around a question",
        (sealed, '("question", self.session, round_, leader)'),
        (f"{opened}, stated.salt", opened),
    )
    yield replaced(statements, "padding", ('return written.ljust(room, b"\\0")', "return written"))
    yield replaced(
        "guided_sums.agreement",
        "2q > n + t",
        ("max(self.members_min, least_quorum(asked, self.colluding_max))", "self.members_min"),
    )
    yield replaced(party, "what is left", ("            self._left -= query.l2_squared\n", ""))
    yield replaced(party, "what was answered", ("self._answered, self._link = round_, link\n", "self._link = link\n"))
    yield replaced(
        party,
        "what was signed",
        ("self._answered, self._link = round_, next_link(", "_, self._link = round_, next_link("),
    )
    yield replaced(party, "what was stated", ("        self._led = request.round\n", ""))
    yield replaced(party, "a question that is paid for", ("if query.l2_squared == 0:", "if True:"))
    leader = "guided_sums.leader"
    yield replaced(leader, "questions compared", ("is_close(self._own.question, read.question)", "True"))
    yield replaced(leader, "sums of other answers", ("            self._agrees = False\n", "            pass\n"))
    yield replaced(leader, "nothing more is asked", (" if self._agrees else Idle()", ""))
    yield replaced(leader, "what was read", ("self._read += 1", "self._read += 0"))
    yield replaced(
        "guided_sums.query",
        "a whole client bounded",
        ("return bound_client(form.measure(records), form.l2_squared)", "return form.measure(records)"),
    )

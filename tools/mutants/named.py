"""Faults that a reader of this tree once planted by hand and that no test noticed, and their relatives.

They are tried for ever: each names the text that it replaces, which must occur once. Where that text has moved, move
the mutant with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.operators import is_python


@dataclass(frozen=True)
class Named:
    """One fault: ``old`` occurs once in the file below src/cloister; ``tests`` should notice."""

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> str:
        """Where it is planted, from the tree's root."""
        return f"src/cloister/{self.module}.py"

    def apply(self, root: Path) -> bytes:
        """Return the file with the fault in it."""
        text = (root / self.path).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(
                f"the mutant {self.name!r} must replace a text that occurs once in {self.path}; it occurs "
                f"{text.count(self.old)} times. Move the mutant to where that code is today."
            )
        changed = text.replace(self.old, self.new).encode()
        if not is_python(changed):
            raise ValueError(f"the mutant {self.name!r} must leave Python behind; it does not compile.")
        return changed


_SECRETS = ("tests/test_secrets.py",)
_COORDINATES = ("tests/test_coordinates.py",)
_MISSING = ("tests/data/test_kinds.py", "tests/test_missing.py")
_STREAM = ("tests/crypto/test_stream.py",)
_SHARING = ("tests/crypto/test_secret_sharing.py",)
_DEALING = ("tests/joint_noise/test_dealing.py",)
_THRESHOLD = ("tests/lattice/test_threshold.py",)
_ORDER = ("tests/protocols/align/test_leakage.py",)
_REPLACED = ("tests/protocols/vertical/test_settings.py", "tests/protocols/vertical/test_job.py")
_SAMPLERS = ("tests/privacy/test_sampler_entropy.py",)
_NOISE = ("tests/privacy/test_samplers.py",)
_KERNEL = ("tests/privacy/test_noise_kernel.py",)
_PROPOSALS = ("tests/privacy/test_proposals.py",)
_EXPONENTIALS = ("tests/privacy/test_exponentials.py",)
_BOOKS = ("tests/privacy/test_books.py",)
_BLOCKS = ("tests/kmeans/test_expression.py",)
_JOB = ("tests/jobfile/test_any_value.py",)
_PERSONS = ("tests/data/test_persons.py",)
_PERSON_JOBS = ("tests/protocols/test_persons.py",)
_ESTIMATOR = ("tests/estimators/test_kmeans.py",)
_ACCOUNT = ("tests/estimators/test_account.py",)
_SEARCH = ("tests/estimators/test_search.py",)
_WATCH_LOG = ("tests/deployment/watch/test_log.py",)
_WATCH_PAGES = ("tests/deployment/watch/test_pages.py",)
_ABSENT = ("tests/test_absent.py",)
_PIPES = ("tests/runtime/test_pipes.py",)
_EXPOSURE = ("tests/exposure/test_exposure.py",)
_LENGTHS = ("tests/exposure/test_lengths.py",)
_CENTRE_NOISE = ("tests/privacy/test_centre_noise.py",)
_SIZES = ("tests/report/test_sizes.py",)
_TEXT = ("tests/report/test_report_text.py",)
_KEYS = ("tests/credentials/test_keys.py",)
_FINGERPRINT = ("tests/crypto/test_fingerprint.py",)
_IDENTITIES = ("tests/jobfile/test_identities.py",)
_POLICY = ("tests/jobfile/test_policy.py",)
_CONSENT = ("tests/agreement/test_consent.py",)
_RECORD = ("tests/agreement/test_record.py",)
_GREETING = ("tests/runtime/test_greeting.py",)
_AGREED = ("tests/deployment/test_agreement.py",)
_HUB = ("tests/runtime/remote/test_hub.py",)
_PARTY_RUN = ("tests/deployment/test_party_run.py",)
_OTHER_LIBRARY = ("tests/protocols/multiparty_lloyd/test_other_library.py",)
_SHIFTED = ("tests/protocols/multiparty_lloyd/test_shifted_totals.py",)
_NOTES = ("tests/protocols/guided_sums/test_notes.py",)
_CONTRACT = ("tests/jobfile/test_contract.py",)
_HTML = ("tests/report/test_page.py",)
_JSON = ("tests/cli/test_cli_json.py",)
_PYTHON = ("tests/test_python_api.py",)


def _seed_0(name: str, old: str) -> Named:
    """A fault in what a simulation makes: without a seed, its secrets are those of seed 0."""
    return Named(name, "sessions/simulation", old, re.sub(r"(seed|keys)\)", r"\1 or 0)", old), _SECRETS)


_SPREAD = ("tests/protocols/synopsis/test_spread.py",)

NAMED: tuple[Named, ...] = (
    Named(
        "sums of all clients under one key",
        "protocols/secfc/sharing",
        '(session, "sum shares", sender, owners, book.digest)',
        '(session, "sum shares", owners, book.digest)',
        ("tests/protocols/secfc/test_pads.py",),
    ),
    Named(
        "a sample follows from no session",
        "protocols/guided_sums/agreement",
        'derive_key(digest, "public sample", session)',
        'derive_key(digest, "public sample")',
        ("tests/protocols/feddp/test_session.py",),
    ),
    Named("unseeded is seed 0", "crypto/stream", "        return SystemEntropy()\n", "        seed = 0\n", _SECRETS),
    Named("the system's entropy is constant", "crypto/stream", "secrets.token_bytes(count)", "bytes(count)", _SECRETS),
    Named(
        "the common seed is constant",
        "aggregation/seed_agreement",
        "seed = self._entropy.bytes(SEED_BYTES)",
        "seed = bytes(SEED_BYTES)",
        _SECRETS,
    ),
    _seed_0("parties' keys from seed 0", 'make_entropy(f"{prefix}party {number}", seed=self.instruments.keys)'),
    _seed_0("identities from seed 0", 'make_entropy(f"identity of {party.name}", seed=instruments.keys)'),
    _seed_0("the session's number from seed 0", 'session=make_entropy("session", seed=seed).bytes(16)'),
    _seed_0("the number of the session for labels from seed 0", 'make_entropy("session for labels", seed=seed)'),
    _seed_0("the coordinator's keys from seed 0", "make_entropy(COORDINATOR, seed=seed)"),
    _seed_0("the labels' coordinator's keys from seed 0", 'make_entropy(f"labels: {COORDINATOR}", seed=seed)'),
    Named(
        "an alignment's identities from seed 0",
        "sessions/alignment",
        'make_entropy(f"identity of {name}", seed=seed, secure=secure)',
        'make_entropy(f"identity of {name}", seed=seed or 0)',
        _SECRETS,
    ),
    Named(
        "an alignment's parties' keys from seed 0",
        "sessions/alignment",
        'make_entropy(f"align party {name}", seed=seed, secure=secure)',
        'make_entropy(f"align party {name}", seed=seed or 0)',
        _SECRETS,
    ),
    Named(
        "an alignment's coordinator's keys from seed 0",
        "sessions/alignment",
        'make_entropy("align coordinator", seed=seed, secure=secure)',
        'make_entropy("align coordinator", seed=seed or 0)',
        _SECRETS,
    ),
    Named(
        "an alignment's session number from seed 0",
        "sessions/alignment",
        'make_entropy("align session", seed=seed, secure=secure)',
        'make_entropy("align session", seed=seed or 0)',
        _SECRETS,
    ),
    Named(
        "a party's noise from seed 0",
        "sessions/simulation",
        "sampler=make_sampler(name)",
        "sampler=Instruments.of_seed(seed or 0).make_sampler(name)",
        _SECRETS,
    ),
    Named(
        "the coordinator's noise from seed 0",
        "sessions/simulation",
        "sampler=make_sampler(COORDINATOR)",
        "sampler=Instruments.of_seed(seed or 0).make_sampler(COORDINATOR)",
        _SECRETS,
    ),
    Named(
        "unseeded noise from seed 0",
        "privacy/books",
        "ExactSampler() if seed is None else SimulationSampler(Stream.from_seed(seed,",
        "SimulationSampler(Stream.from_seed(seed or 0,",
        _SECRETS,
    ),
    Named(
        "constant identities",
        "crypto/identity",
        "Ed25519PrivateKey.from_private_bytes(entropy.bytes(SECRET_BYTES))",
        "Ed25519PrivateKey.from_private_bytes(bytes(SECRET_BYTES))",
        _SECRETS,
    ),
    Named(
        "constant session keys",
        "crypto/identity",
        "X25519PrivateKey.from_private_bytes(entropy.bytes(32))",
        "X25519PrivateKey.from_private_bytes(bytes(32))",
        _SECRETS,
    ),
    Named(
        "a constant key for each box",
        "crypto/sealing",
        "ephemeral = SessionKey(entropy)",
        "ephemeral = sender",
        ("tests/crypto/test_sealing.py",),
    ),
    Named(
        "contexts without lengths",
        "crypto/stream",
        'parts.append(tag + len(raw).to_bytes(4, "little") + raw)',
        "parts.append(tag + raw)",
        _STREAM,
    ),
    Named(
        "contexts without types",
        "crypto/stream",
        'parts.append(tag + len(raw).to_bytes(4, "little") + raw)',
        'parts.append(len(raw).to_bytes(4, "little") + raw)',
        _STREAM,
    ),
    Named(
        "bytes and texts are one context", "crypto/stream", 'tag, raw = b"b", part', 'tag, raw = b"s", part', _STREAM
    ),
    Named(
        "lengths of one byte",
        "crypto/stream",
        'len(raw).to_bytes(4, "little")',
        '(len(raw) % 256).to_bytes(1, "little")',
        _STREAM,
    ),
    Named("all children alike", "crypto/stream", '"child", *context', '"child"', _STREAM),
    Named(
        "equal Shamir coefficients",
        "crypto/secret_sharing",
        "*(_draw_below_prime(entropy) for _ in range(threshold - 1))",
        "*[_draw_below_prime(entropy)] * (threshold - 1)",
        _SHARING,
    ),
    Named(
        "one Shamir coefficient less",
        "crypto/secret_sharing",
        "for _ in range(threshold - 1)",
        "for _ in range(min(1, threshold - 1))",
        _SHARING,
    ),
    Named(
        "small Shamir coefficients",
        "crypto/secret_sharing",
        "entropy.bytes(SHARE_BYTES), ",
        "entropy.bytes(1).ljust(SHARE_BYTES, bytes(1)), ",
        _SHARING,
    ),
    Named(
        "party 0 knows the random bits",
        "joint_noise/dealing",
        "Stream.from_seed(entropy.bytes(KEY_BYTES), ",
        "Stream.from_seed(keys[0], ",
        _DEALING,
    ),
    Named(
        "party 0 knows the last party's shares",
        "joint_noise/dealing",
        "last_key = keys.pop()",
        "last_key = keys.pop() and keys[0]",
        _DEALING,
    ),
    Named(
        "constant random bits",
        "joint_noise/dealing",
        "Stream.from_seed(entropy.bytes(KEY_BYTES), ",
        "Stream.from_seed(bytes(KEY_BYTES), ",
        _DEALING,
    ),
    Named(
        "a party's stream is constant",
        "protocols/vertical/relayed",
        "Stream(seat.entropy.bytes(32))",
        "Stream(bytes(32))",
        ("tests/protocols/vertical/test_relayed.py",),
    ),
    Named(
        "equal coefficients of threshold keys",
        "lattice/threshold",
        'key, "share", power, number)',
        'key, "share", 1, number)',
        _THRESHOLD,
    ),
    Named(
        "threshold keys of one coefficient",
        "lattice/threshold",
        "for power in range(1, threshold)",
        "for power in range(1, min(2, threshold))",
        _THRESHOLD,
    ),
    Named(
        "one coefficient for all secrets",
        "lattice/threshold",
        'key, "share", power, number)',
        'key, "share", power, 0)',
        _THRESHOLD,
    ),
    Named(
        "shares of masks with coefficients that everybody knows",
        "aggregation/own_masks",
        "holders=members, entropy=entropy)",
        "holders=members, entropy=__import__('cloister.crypto').crypto.Stream(bytes(32)))",
        _SECRETS,
    ),
    Named(
        "coins of eight bits",
        "lattice/collective",
        "opening = entropy.bytes(TOSS_BYTES)",
        "opening = entropy.bytes(1).ljust(TOSS_BYTES, bytes(1))",
        ("tests/lattice/test_collective.py",),
    ),
    Named(
        "a list in the order of its rows",
        "protocols/align/party",
        "Stream(self._entropy.bytes(32)).permutation(len(self._exact_ids))",
        "np.arange(len(self._exact_ids))",
        _ORDER,
    ),
    Named(
        "a list in one order for ever",
        "protocols/align/party",
        "Stream(self._entropy.bytes(32)).permutation",
        "Stream(bytes(32)).permutation",
        _ORDER,
    ),
    Named(
        "sums are revealed repeatedly",
        "protocols/secfc/holder",
        "        self._revealed = True\n",
        "",
        ("tests/protocols/secfc/test_refusals.py",),
    ),
    Named(
        "pads that do not depend on the responders",
        "protocols/secfc/holder",
        '(*context, np.array(responders, dtype="<u2").tobytes())',
        "context",
        ("tests/protocols/secfc/test_pads.py",),
    ),
    Named(
        "replacement at the price of adding twice",
        "protocols/vertical/settings",
        "max(4 * self.sum_rho, 2 * self.sum_rho + 2 * self.count_rho)",
        "2 * self.sum_rho + 2 * self.count_rho",
        _REPLACED,
    ),
    Named(
        "replacement in a codebook at the price of adding",
        "protocols/vertical/settings",
        "4 * self.codebooks_rho",
        "2 * self.codebooks_rho",
        _REPLACED,
    ),
    Named("replacement costs no flood", "protocols/vertical/leakage", " + 4 * settings.flood_rho", "", _REPLACED),
    Named(
        "exact noise: constant thinning",
        "privacy/samplers",
        "self._take_words(16 * (geometric.size - done))",
        "np.arange(1 << 62, 1 << 63, 1 << 48, dtype=np.uint64)",
        _SAMPLERS,
    ),
    Named(
        "exact noise: the coin is V's word",
        "privacy/noise_kernel",
        "words[at + 2] >> _ONE",
        "words[at + 1] >> _ONE",
        _KERNEL,
    ),
    Named(
        "exact noise: the sign is V's word",
        "privacy/noise_kernel",
        "words[at + 2] & _ONE",
        "words[at + 1] & _ONE",
        _KERNEL,
    ),
    Named(
        "exact noise: a word serves two proposals",
        "privacy/noise_kernel",
        "            break\n        at += WORDS",
        "            break\n        at += 2",
        _KERNEL,
    ),
    Named(
        "exact noise: an open proposal's words go on to the next",
        "privacy/samplers",
        "                    at += WORDS",
        "                    at += WORDS - 1",
        _NOISE,
    ),
    Named("exact noise: open proposals are dropped", "privacy/samplers", "sample is not None", "False", _NOISE),
    Named("exact noise: no gap", "privacy/noise_kernel", "GAP = 1 << 18", "GAP = 1", _KERNEL),
    Named("exact noise: a narrower gap", "privacy/noise_kernel", "GAP = 1 << 18", "GAP = 1 << 16", _KERNEL),
    Named(
        "exact noise: open coins are kept",
        "privacy/noise_kernel",
        "if coin < bound:",
        "if coin < bound + _GAP:",
        _KERNEL,
    ),
    Named(
        "exact noise: an exponent that may be too small",
        "privacy/proposals",
        "math.ceil(least) + 3",
        "math.ceil(least)",
        _KERNEL,
    ),
    Named(
        "exact noise: a table of ceilings",
        "privacy/noise_kernel",
        "floor_exponential(Fraction(i, 1 << 8 * place), WORD_BITS)",
        "floor_exponential(Fraction(i, 1 << 8 * place), WORD_BITS) + 1",
        _KERNEL,
    ),
    Named("exact noise: V is never open", "privacy/noise_kernel", " or uniform == thresholds[run]", "", _KERNEL),
    Named("exact noise: V stops at 16", "privacy/noise_kernel", "run == runs or ", "run < runs and ", _KERNEL),
    Named(
        "exact noise: V's table one too high",
        "privacy/proposals",
        "[floor_exponential(run * self.step, WORD_BITS) for",
        "[floor_exponential(run * self.step, WORD_BITS) + 1 for",
        _KERNEL,
    ),
    Named(
        "exact noise: zero counts double", "privacy/noise_kernel", "magnitude != 0 or not is_negative", "True", _KERNEL
    ),
    Named(
        "exact noise: open zeros count double",
        "privacy/proposals",
        "is_negative and magnitude == 0",
        "False",
        _PROPOSALS,
    ),
    Named(
        "exact noise: words that favour small U",
        "privacy/noise_kernel",
        "if rest < unfair:",
        "if rest < _ZERO:",
        _KERNEL,
    ),
    Named(
        "exact noise: words that favour small cycles",
        "privacy/noise_kernel",
        "rest < (_ZERO - places) % places:",
        "rest < _ZERO:",
        _KERNEL,
    ),
    Named(
        "exact noise: sigma to three digits",
        "privacy/proposals",
        "sigma = Fraction(mechanism.sigma)",
        "sigma = Fraction(f'{mechanism.sigma:.3e}')",
        _PROPOSALS,
    ),
    Named(
        "exact noise: a scale without its fraction",
        "privacy/proposals",
        "scale = Fraction(mechanism.scale)",
        "scale = Fraction(mechanism.scale if mechanism.scale < 2 else int(mechanism.scale))",
        _PROPOSALS,
    ),
    Named(
        "exact noise: the prefix of exp(-y) is below it",
        "privacy/exponentials",
        "self._prefix < low:",
        "self._prefix <= low:",
        _EXPONENTIALS,
    ),
    Named(
        "exact noise: an open number goes on with zeros",
        "privacy/exponentials",
        'int.from_bytes(self._source.bytes(WORD_BITS // 8), "little")',
        "0",
        _EXPONENTIALS,
    ),
    Named(
        "exact noise: enclosures without the error of their sum",
        "privacy/exponentials",
        "total - precision, min(one, total + precision)",
        "total, min(one, total)",
        _EXPONENTIALS,
    ),
    Named(
        "exact noise: a halving is not taken back",
        "privacy/exponentials",
        "range(halvings)",
        "range(halvings - 1)",
        _EXPONENTIALS,
    ),
    Named(
        "clipping only above 1.001 R^2",
        "privacy/encoder",
        "** 2 * (1 - 1e-12)",
        "** 2 * 1.001",
        ("tests/privacy/test_encoder.py",),
    ),
    Named(
        "no step towards zero after clipping",
        "privacy/encoder",
        "np.floor(np.abs(grid[long]) * factor[:, None]) - 1",
        "np.ceil(np.abs(grid[long]) * factor[:, None])",
        ("tests/privacy/test_encoder.py",),
    ),
    Named(
        "no allowance for Fourier transforms",
        "privacy/privacy_loss",
        "(delta - _TRANSFORM_ERROR)",
        "delta",
        ("tests/privacy/test_privacy_loss.py",),
    ),
    Named("the rho envelope is never drawn down", "privacy/books", "self._left = left", "pass", _BOOKS),
    Named(
        "the payment is never drawn down",
        "privacy/books",
        "self._l1, self._l2_squared, self._entries = l1, l2_squared, entries",
        "pass",
        _BOOKS,
    ),
    Named(
        "labels under all of fastmath",
        "kmeans/blocks",
        '_compile = Compile(fastmath={"contract"})',
        "_compile = Compile(fastmath=True)",
        _BLOCKS,
    ),
    Named(
        "distances in any order",
        "kmeans/blocks",
        '_compile = Compile(fastmath={"contract"})',
        '_compile = Compile(fastmath={"contract", "reassoc", "nsz"})',
        _BLOCKS,
    ),
    Named(
        "an unsigned leader's key",
        "aggregation/seed_agreement",
        "        self._verify(leader)\n",
        "",
        ("tests/aggregation/test_seed_agreement.py", "tests/test_secrets.py"),
    ),
    Named(
        "a job is read in quadratic time",
        "job/model",
        "if times[column.name] > 1:",
        "if [other.name for other in columns].count(column.name) > 1:",
        _JOB,
    ),
    Named(
        "keys of any depth",
        "jobfile/reader",
        "    if deep is not None:\n",
        "    if deep is not None and len(deep.group()) < 1:\n",
        _JOB,
    ),
    Named(
        "declared records are read unchecked",
        "jobfile/sections",
        '    check_fields(("data",), data)\n',
        "",
        _JOB,
    ),
    Named(
        "others are told why a party is absent",
        "errors",
        "        raise AbsentError(party, error) from error\n",
        "        raise\n",
        _ABSENT,
    ),
    Named(
        "an absent party's text says why",
        "errors",
        "Its owner alone is told why. Run the job again ",
        "{why} Run the job again ",
        _ABSENT,
    ),
    Named(
        "an error in a session is told to all",
        "runtime/local",
        "with told_to_owner(self._names[party - 1], but=(RemoteProtocolError,)):",
        "if True:",
        _ABSENT,
    ),
    Named(
        "a ledger's refusal is told to all",
        "privacy/books",
        "            with told_to_owner(book.party):\n",
        "            if True:\n",
        _ABSENT,
    ),
    Named(
        "an error over a pipe has a class and a text",
        "runtime/pipe_messages",
        "return cls(kind, str(error)) if kind in _TOLD_TO_ALL else cls()",
        "return cls(kind, str(error))",
        _ABSENT,
    ),
    Named(
        "a refused frame over a pipe has a reason",
        "runtime/piped_role",
        "reply = messages.Refused()",
        "reply = messages.Refused(str(error))",
        _PIPES,
    ),
    Named(
        "tables of other lengths are told by length",
        "sessions/assembly",
        'in the same order; they do not. "\n',
        'in the same order; they do not. " + repr(sorted(counts.values())) +\n',
        ("tests/protocols/vertical/test_job_tables.py",),
    ),
    Named(
        "a private result has the exact loss",
        "report/result",
        "told = result if result.card is None else msgspec.structs.replace(result, evaluation=None)",
        "told = result",
        _EXPOSURE,
    ),
    Named(
        "a note has the hash of all messages",
        "sessions/simulation",
        "notes=explanation.notes,",
        "notes=(*explanation.notes, run.transcript_sha256),",
        _EXPOSURE,
    ),
    Named(
        "progress says how many records there are",
        "sessions/simulation",
        "            on_progress=self.on_progress,\n        )\n\n\ndef _find",
        "            on_progress=lambda step: self.on_progress(\n"
        "                replace(step, label=str([table.table.check().records for table in self.tables.values()]))\n"
        "            ),\n        )\n\n\ndef _find",
        _EXPOSURE,
    ),
    Named(
        "questions are as long as they are",
        "protocols/guided_sums/statements",
        'return written.ljust(room, b"\\0")',
        "return written",
        _LENGTHS,
    ),
    Named(
        "the noise of sums is not in a centre's",
        "privacy/centre_noise",
        "(sum_std**2 + means**2 * of_counts[:, None])",
        "(means**2 * of_counts[:, None])",
        _CENTRE_NOISE,
    ),
    Named(
        "the noise of counts is not in a centre's",
        "privacy/centre_noise",
        "(sum_std**2 + means**2 * of_counts[:, None])",
        "(sum_std**2 + 0.0 * of_counts[:, None])",
        _CENTRE_NOISE,
    ),
    Named(
        "a centre carries the noise of its last round only",
        "privacy/centre_noise",
        "np.square(1.0 - np.asarray(gains)) * left",
        "0.0 * left",
        _CENTRE_NOISE,
    ),
    Named(
        "a centre's noise is halved on its way to the result",
        "columns/coordinates",
        "return scaled / (unit_ends(axes) - unit_starts(axes))",
        "return scaled / (unit_ends(axes) - unit_starts(axes)) / 2",
        ("tests/test_columns.py",),
    ),
    Named(
        "the noise of clients' sizes is in another unit",
        "report/sizes",
        "1.0) * whole**2 +",
        "1.0) +",
        _SIZES,
    ),
    Named(
        "the total's noise is not in clients' sizes",
        "report/sizes",
        "shares**2 * total_variance)",
        "0.0 * total_variance)",
        _SIZES,
    ),
    Named(
        "sizes do not follow the released total",
        "report/sizes",
        "fitted += believed * (total - fitted)",
        "fitted += 0.0",
        _SIZES,
    ),
    Named(
        "a party votes twice for its size",
        "protocols/guided_sums/statistics",
        "= height - upper, upper",
        "= height, upper",
        ("tests/protocols/guided_sums/test_clients.py",),
    ),
    Named(
        "fewer than what was seen",
        "report/layout",
        "(math.floor(bound / step) + 1) * step",
        "math.floor(bound / step) * step",
        _TEXT,
    ),
    Named(
        "only centres that are all noise are named",
        "report/result",
        "_MOSTLY_NOISE = 0.1 ",
        "_MOSTLY_NOISE = 0.28 ",
        _TEXT,
    ),
    Named(
        "a fingerprint without its checksum",
        "crypto/fingerprint",
        "    if check != _check(identity):\n",
        "    if False:\n",
        _FINGERPRINT,
    ),
    Named("keys that others can read", "credentials/files", "status.st_mode & _OF_OTHERS or ", "", _KEYS),
    Named(
        "keys that replace others", "credentials/files", "path.hardlink_to(temporary)", "temporary.replace(path)", _KEYS
    ),
    Named(
        "a public file with anybody's certificate",
        "credentials/keys",
        "        if not is_certified(self.signature, self.identity, self.chain.der):\n",
        "        if not self.signature:\n",
        _KEYS,
    ),
    Named(
        "an expired certificate is used", "credentials/keys", "    if now > valid_until:\n", "    if False:\n", _KEYS
    ),
    Named("a certificate that may sign others", "credentials/certificates", "ca=False", "ca=True", _KEYS),
    Named(
        "a TLS key that is not fresh",
        "credentials/certificates",
        'int.from_bytes(entropy.bytes(_WIDE_BYTES), "big") %',
        "7 %",
        _KEYS,
    ),
    Named(
        "one journal key for all",
        "credentials/keys",
        'derive_key(form.secret, "journals of an identity")',
        'derive_key(b"cloister", "journals of an identity")',
        _KEYS,
    ),
    Named(
        "a digest without identities",
        "job/people",
        "    return agreed if party.identity is None else",
        "    return agreed if True else",
        _IDENTITIES,
    ),
    Named("one party twice", "job/people", "        if identity in given:\n", "        if False:\n", _IDENTITIES),
    Named("a policy without its cap on epsilon", "job/policy", "not asked <= limit", "False", _POLICY),
    Named("a policy that exact jobs pass", "job/policy", "asked is None or not", "asked is not None and not", _POLICY),
    Named(
        "a policy that forgets the column of IDs",
        "job/policy",
        "        asked.append(job.data.id)\n",
        "        pass\n",
        _POLICY,
    ),
    Named(
        "a policy that counts parties that may be missing",
        "job/policy",
        "least < policy.parties_min",
        "parties < policy.parties_min",
        _POLICY,
    ),
    Named(
        "a policy that revokes nobody",
        "job/policy",
        "lambda one: one not in policy.revoked",
        "lambda one: True",
        _POLICY,
    ),
    Named(
        "a policy of what was asked, not of what runs",
        "deployment/own_roles",
        "        if session.job is not job:\n",
        "        if False:\n",
        _AGREED,
    ),
    Named(
        "a consent to any job",
        "agreement/consent",
        "    if consent.digest != job.digest.hex():\n",
        "    if False:\n",
        _CONSENT,
    ),
    Named(
        "a consent for ever",
        "agreement/consent",
        "    if consent.run and consent.run != run.hex():\n",
        "    if False:\n",
        (*_CONSENT, *_AGREED),
    ),
    Named(
        "a consent that nobody uses up",
        "deployment/party_run",
        "            self._place.consent.use(self._run)\n",
        "            pass\n",
        _AGREED,
    ),
    Named("a ledger's heads without salt", "agreement/record", "bytes.fromhex(opening.salt), *said", "*said", _RECORD),
    Named(
        "a record that holds for other files",
        "agreement/verify",
        ".hexdigest() == file.sha256",
        '.hexdigest() != ""',
        _RECORD,
    ),
    Named("a quorum of one", "agreement/verify", "signed >= least", "signed >= 1", _RECORD),
    Named(
        "votes of another session",
        "agreement/verify",
        " and votes.session.hex() in {part.session for part in record.sessions}",
        "",
        _RECORD,
    ),
    Named(
        "a consent to any run",
        "credentials/statements",
        '    return ("cloister consent", connection_version, job, run)',
        '    return ("cloister consent", connection_version, job)',
        (*_RECORD, *_GREETING),
    ),
    Named(
        "a greeting with anybody's certificate",
        "runtime/remote/greeting",
        "and is_certified(hello.certificate_signature, identity, peer)",
        "and hello.certificate_signature",
        _GREETING,
    ),
    Named(
        "a greeting that can be replayed",
        "runtime/remote/greeting",
        '("cloister hello", MAJOR, job, party, program, challenge, nonce,',
        '("cloister hello", MAJOR, job, party, program, nonce,',
        _GREETING,
    ),
    Named(
        "nobody is shown the others' consents",
        "runtime/remote/greeting",
        "    return len(agreed.parties) <= CONSENTS_MOST",
        "    return False",
        _GREETING,
    ),
    Named(
        "one certificate takes all places of strangers",
        "runtime/remote/admission",
        "        certificate = channel.stream.peer\n",
        '        certificate = b""\n',
        _HUB,
    ),
    Named("revoked and let in", "runtime/remote/greeting", "    if agreed.revoked & {", "    if set() & {", _GREETING),
    Named(
        "a party may hold another job", "runtime/remote/greeting", "    if hello.job != agreed.job:", "    if 0:", _HUB
    ),
    Named(
        "a reply to what was not asked",
        "runtime/remote/connection",
        "and message.number not in self._asked:",
        "and message.number < 0:",
        ("tests/runtime/remote/test_connection.py",),
    ),
    Named(
        "strangers may send much",
        "runtime/remote/connection",
        "            return messages.GREETING_BYTES\n",
        "            return messages.CONTROL_BYTES\n",
        ("tests/runtime/remote/test_connection.py",),
    ),
    Named(
        "chunks without end",
        "runtime/remote/chunks",
        " or (mark == _MORE and len(part) < CHUNK_BYTES)",
        "",
        ("tests/runtime/remote/test_chunks.py",),
    ),
    Named(
        "who has left comes back", "runtime/remote/admission", "        if member.has_left:\n", "        if 0:\n", _HUB
    ),
    Named(
        "an unsigned consent",
        "runtime/remote/admission",
        "        if not is_signed(signature, self._agreed.parties[member.name], *statement):\n",
        "        if 0:\n",
        _HUB,
    ),
    Named(
        "the end of a stream is the end of a run",
        "runtime/remote/participant",
        "                self._why[str(error)] = None\n",
        "                return\n",
        ("tests/runtime/remote/test_participant.py",),
    ),
    Named(
        "what clients' tables are refused for, in the result for all to read",
        "report/folder",
        "                    (fresh / name).touch(mode=_PRIVATE_MODE)\n",
        "",
        ("tests/deployment/test_clients.py",),
    ),
    Named(
        "an epsilon written as less than it is",
        "privacy/units",
        "math.ceil(round(bound * 10**decimals, 6 - digits))",
        "round(bound * 10**decimals)",
        ("tests/cli/test_cli_ledger.py",),
    ),
    Named(
        "how long a run took, in its record",
        "deployment/proof",
        "datetime.now(UTC).date().isoformat()",
        "datetime.now(UTC).isoformat()",
        _WATCH_LOG,
    ),
    Named(
        "how long each session took, to the millisecond",
        "deployment/record",
        "seconds=int(one.seconds),",
        "seconds=round(one.seconds, 3),",
        _WATCH_LOG,
    ),
    Named(
        "a coordinator tells of clusters as it likes",
        "protocols/secfc/protocol",
        "        if len(heard.counts) != agreed.clusters:\n",
        "        if 0:\n",
        ("tests/hostile/test_outcomes.py",),
    ),
    Named(
        "a coordinator writes to our screen",
        "runtime/remote/participant",
        " and label.isprintable()):\n",
        "):\n",
        ("tests/runtime/remote/test_participant.py",),
    ),
    Named(
        "a coordinator names whom it likes in our result",
        "runtime/remote/participant",
        '            return message.left, ""\n',
        '            return (), ""\n',
        ("tests/runtime/remote/test_participant.py",),
    ),
    Named(
        "a coordinator writes versions as it likes",
        "runtime/remote/greeting",
        "        read_major(one.program) is not None and _is_consented",
        "        _is_consented",
        _GREETING,
    ),
    Named(
        "garbage spends the ledger",
        "deployment/party_run",
        "            session.endpoint.read(frame)  # what is refused here costs nothing\n",
        "            pass\n",
        _PARTY_RUN,
    ),
    Named(
        "one payment for two draws of noise",
        "deployment/payment",
        "        has_journal = resumed and memory is not None and memory.is_resumed\n",
        "        has_journal = True\n",
        _PARTY_RUN,
    ),
    Named(
        "a ledger that was set back",
        "deployment/payment",
        "        if not self._is_made and memory is not None and memory.recovered and not ledger.seeded:\n",
        "        if 0:\n",
        _PARTY_RUN,
    ),
    Named(
        "a session of no run",
        "deployment/party_run",
        " or start.session != make_session_id(start.kind, run=self._run, seed=seed):\n",
        ":\n",
        _PARTY_RUN,
    ),
    Named(
        "records with IDs clustered unaligned",
        "deployment/own_roles",
        "        if self.table.ids is not None and self.alignment is None:\n",
        "        if 0:\n",
        _PARTY_RUN,
    ),
    Named(
        "other public parameters than the coordinator's",
        "deployment/own_roles",
        "        if start.agreed != session.protocol.digest(session.agreed):  # before anything is paid\n",
        "        if False:\n",
        _PARTY_RUN,
    ),
    Named(
        "scales of noise rounded to the nearest",
        "privacy/calibration",
        "math.ldexp(math.ceil(math.ldexp(fraction, _AGREED_BITS)), ",
        "math.ldexp(round(math.ldexp(fraction, _AGREED_BITS)), ",
        _OTHER_LIBRARY,
    ),
    Named(
        "exact sums that no records give are refused",
        "protocols/multiparty_lloyd/party",
        "            self.confined += not np.array_equal(exact, shaped)\n",
        "            if (exact != shaped).any():\n                raise RemoteProtocolError('impossible sums.')\n",
        _SHIFTED,
    ),
    Named(
        "exact sums that no records give are taken as they are",
        "protocols/multiparty_lloyd/party",
        "            exact, shaped = shaped, rule.confine(shaped, members=members)\n",
        "            exact = rule.confine(shaped, members=members)\n",
        _SHIFTED,
    ),
    Named(
        "missed rounds are not told",
        "protocols/guided_sums/protocol",
        "or len(set(sums)) < 2:",
        "or sums:",
        _NOTES,
    ),
    Named(
        "a session with too few seats is asked, and paid for",
        "runtime/remote/hub",
        "        if endpoint.step == 0 and len(members) - len(missing) < members_min:\n",
        "        if False:\n",
        _AGREED,
    ),
    Named(
        "a log that tells what is wrong with a table",
        "deployment/watch/log",
        "outcome=type(wrong).__name__, exit_code",
        "outcome=str(wrong), exit_code",
        _WATCH_LOG,
    ),
    Named(
        "lengths of replies in the log",
        "deployment/watch/log",
        "            self.write(what, peer=event.peer)\n",
        "            self.write(what, peer=event.peer, size=event.size_bytes)\n",
        _WATCH_LOG,
    ),
    Named(
        "a flood that fills the log",
        "deployment/watch/log",
        "        if self._lines >= _BURST:\n",
        "        if 0:\n",
        _WATCH_LOG,
    ),
    Named(
        "a flood at the port of metrics",
        "deployment/watch/http",
        "        if len(self._answered) >= _ANSWERS_MOST:\n",
        "        if 0:\n",
        _WATCH_PAGES,
    ),
    Named(
        "callers of metrics who say nothing",
        "deployment/watch/http",
        "self._callers >= _CALLERS_MOST or ",
        "",
        _WATCH_PAGES,
    ),
    Named(
        "a stranger's word for a name",
        "runtime/remote/admission",
        '            known = hello.party if hello.party in self._agreed.parties else ""\n',
        "            known = hello.party\n",
        _HUB,
    ),
    Named(
        "a party that refuses in silence",
        "runtime/remote/participant",
        "            await channel.send(messages.Rejected(refused.reason))\n",
        "",
        _HUB,
    ),
    Named(
        "a run that cannot be given up",
        "runtime/journal",
        "                    os.ftruncate(self._file, 0)\n",
        "                    pass\n",
        ("tests/test_versions.py",),
    ),
    Named(
        "a number is taken for an unknown level",
        "columns/coordinates",
        'if column.kind == "category" else cells[:, None]',
        "if True else cells[:, None]",
        _COORDINATES,
    ),
    Named(
        "a weight takes a coordinate out of the domain",
        "columns/coordinates",
        "weight = column.weight / weight_most",
        "weight = column.weight",
        _COORDINATES,
    ),
    Named(
        "coordinates are not clipped to where theirs end",
        "columns/coordinates",
        "return np.clip(points, unit_starts(axes), unit_ends(axes), out=points)",
        "return np.clip(points, -1.0, 1.0, out=points)",
        _COORDINATES,
    ),
    Named(
        "levels are not agreed on",
        "columns/column",
        '            "levels": (self.levels, ()),\n',
        "",
        ("tests/jobfile/test_digests.py",),
    ),
    Named(
        "what becomes of missing cells is not agreed on",
        "job/model",
        '_NOT_AGREED = frozenset({"match", "server"})',
        '_NOT_AGREED = frozenset({"match", "missing", "server"})',
        ("tests/test_missing.py",),
    ),
    Named(
        "a record that is left out keeps its ID",
        "data/table",
        "id_cells += compress(cells, usable)",
        "id_cells += cells[: len(values)]",
        _MISSING,
    ),
    Named(
        "a chunk with a gap is left out whole",
        "data/table",
        "            yield values[usable]\n",
        "            yield values if usable.all() else values[:0]\n",
        _MISSING,
    ),
    Named(
        "init writes levels without being asked",
        "cli/drafting",
        "levels=look.levels if propose_levels else ()",
        "levels=look.levels",
        ("tests/cli/test_hospitals.py",),
    ),
    Named(
        "init proposes rare levels",
        "data/looking",
        "if count >= _LEVEL_ROWS and",
        "if count and",
        ("tests/cli/test_hospitals.py",),
    ),
    Named(
        "shares are shown as they come",
        "report/centres",
        "    kept = np.maximum(numbers, 0.0)\n",
        "    return numbers\n",
        ("tests/report/test_centres.py",),
    ),
    Named(
        "a person priced as a record",
        "protocols/guided_sums/agreement",
        "        sensitivity=query.sensitivity.times(settings.budget.most_records),\n",
        "        sensitivity=query.sensitivity,\n",
        ("tests/protocols/test_person_attacks.py",),
    ),
    Named(
        "noise for a record where a person is hidden",
        "protocols/guided_sums/settings",
        "self.budget.most_records * sqrt(",
        "sqrt(",
        _PERSON_JOBS,
    ),
    Named(
        "rounds of Lloyd with noise for a record",
        "protocols/multiparty_lloyd/noise",
        "    sensitivity = sensitivity.times(budget.most_records)\n",
        "",
        _PERSON_JOBS,
    ),
    Named(
        "c left out",
        "privacy/units",
        "        return self.records * self.parties\n",
        "        return self.parties\n",
        _PERSON_JOBS,
    ),
    Named(
        "q left out",
        "privacy/units",
        "        return self.records * self.parties\n",
        "        return self.records\n",
        _PERSON_JOBS,
    ),
    Named(
        "a plain budget taken for that of persons",
        "privacy/units",
        "        if self.unit is Unit.PERSON:\n            raise",
        "        if 0:\n            raise",
        _PERSON_JOBS,
    ),
    Named(
        "one key for every session's choice of records",
        "sessions/assembly",
        "                key = entropy.bytes(PERSON_KEY_BYTES)\n",
        "                key = bytes(PERSON_KEY_BYTES)\n",
        _PERSON_JOBS,
    ),
    Named(
        "the record kept that stands first",
        "data/persons",
        "(entries[:, 3], entries[:, 2], entries[:, 1], entries[:, 0])",
        "(entries[:, 3], entries[:, 1], entries[:, 0])",
        _PERSONS,
    ),
    Named(
        "tags by the row",
        "data/persons",
        "        record.update(person.digest() + content[place * step : (place + 1) * step])\n",
        "        record.update(person.digest() + (row + place).to_bytes(8))\n",
        _PERSONS,
    ),
    Named(
        "persons told apart by the blanks around an ID",
        "data/persons",
        'unicodedata.normalize("NFC", cell.strip())',
        'unicodedata.normalize("NFC", cell)',
        _PERSONS,
    ),
    Named(
        "persons told apart by a decimal point",
        "data/persons",
        "    whole = _WHOLE.fullmatch(text)\n",
        "    whole = None\n",
        _PERSONS,
    ),
    Named(
        "rows without an ID taken for one person",
        "sessions/tables",
        "        persons.require_all(label)\n",
        "        pass\n",
        _PERSON_JOBS,
    ),
    Named(
        "one column paid for where several are asked",
        "protocols/synopsis/zoom_questions",
        "l2_squared=histograms * height**2",
        "l2_squared=height**2",
        _SPREAD,
    ),
    Named(
        "a missing cell that is counted beside its column's bins",
        "protocols/synopsis/zoom_questions",
        "places[found >= 0]",
        "np.maximum(places, 0)",
        _SPREAD,
    ),
    Named(
        "a record that has two levels",
        "protocols/synopsis/zoom_questions",
        "    return np.bincount(first, minlength=values.shape[1])\n",
        "    return above.sum(axis=0)\n",
        _SPREAD,
    ),
    Named(
        "a scale that does not clip",
        "columns/scale",
        "        np.clip(points, -1.0, 1.0, out=points)\n",
        "",
        _SPREAD,
    ),
    Named(
        "a gap that reaches a sum",
        "kmeans/offsets",
        "fill_from_centres(chunk, centres)",
        "chunk",
        _SPREAD,
    ),
    Named(
        "moments that leave too little",
        "protocols/synopsis/grid_plan",
        "        moment_l2_squared = max(min(moment_l2_squared, most), int(_MOMENT_LEAST * BUDGET_UNITS))\n",
        "",
        _SPREAD,
    ),
    Named(
        "bounds that nobody knows, from too few records",
        "protocols/synopsis/pipeline",
        "settings.any_private and settings.measure_signal(records) < SIGNAL_LEAST",
        "False",
        _SPREAD,
    ),
    Named(
        "folds by position",
        "estimators/folds",
        "    return Stream(SystemEntropy().bytes(32)).integers(folds, records)\n",
        "    return np.arange(records) % folds\n",
        _SEARCH,
    ),
    Named(
        "a score that is not paid for",
        "estimators/grid_search",
        "release(exact, self.event, duty=NoiseDuty(charger=self.paid, sampler=ExactSampler()))",
        "exact",
        _SEARCH,
    ),
    Named(
        "a price that is asked after the fits",
        "estimators/grid_search",
        "session.hold(plan.releases, what=what)",
        "session.hold(plan.releases[:1], what=what)",
        _SEARCH,
    ),
    Named(
        "a fit of each candidate that is not in the price",
        "estimators/grid_search",
        "for release in fit * (folds - 1)",
        "for release in fit * (folds - 2)",
        _SEARCH,
    ),
    Named(
        "fits at a search's expense after its end",
        "estimators/grid_search",
        "            if not ledger.is_held(self._account.dataset, self._hold):\n",
        "            if False:\n",
        _SEARCH,
    ),
    Named(
        "a search that goes on after a refusal",
        "estimators/grid_search",
        'error_score="raise"',
        "error_score=float('nan')",
        _SEARCH,
    ),
    Named(
        "an account that is copied",
        "estimators/account",
        "    def __sklearn_clone__(self) -> Account:\n        return self\n",
        "    def __sklearn_clone__(self) -> Account:\n        return Account(self.path, self.dataset + ' copy')\n",
        _ACCOUNT,
    ),
    Named(
        "an account that starts afresh on another host",
        "estimators/account",
        "ledger = Ledger(self.path, create=False)\n        if ledger.identity != self._identity:",
        "ledger = Ledger(self.path)\n        if False:",
        _ACCOUNT,
    ),
    Named(
        "fits that are charged to nobody's name",
        "estimators/account",
        "OwnSide(ledger=self.path, dataset=self.dataset)",
        "OwnSide(ledger=self.path)",
        _ACCOUNT,
    ),
    Named(
        "labels in pickles",
        "estimators/base",
        '        state.pop("labels_", None)\n',
        "",
        _ESTIMATOR,
    ),
    Named(
        "a weight above the public maximum",
        "estimators/kmeans",
        "((weights >= 0) & (weights <= weight_max)).all()",
        "(weights >= 0).all()",
        _ESTIMATOR,
    ),
    Named(
        "weights that count in full",
        "estimators/kmeans",
        "stream.uniform(len(weights)) < weights / weight_max",
        "weights > 0",
        _ESTIMATOR,
    ),
    Named(
        "one table with half the noise",
        "protocols/guided_sums/alone",
        "release_answer(agreement, round_, query, self._records, duty=self._duty)",
        "release_answer(agreement, round_, query, self._records, duty=self._duty) // 2",
        ("tests/protocols/guided_sums/test_alone.py",),
    ),
    Named(
        "a contract that says where tables are",
        "jobfile/contract",
        "if key in JobParty.__struct_fields__",
        "if True",
        _CONTRACT,
    ),
    Named("a contract with the seed of a run", "jobfile/contract", '{"ledger", "run", "network"}', "set()", _CONTRACT),
    Named("names of a job as markup", "report/page/html", "yield escape(child)", "yield child", _HTML),
    Named(
        "an exact loss in the JSON of a private result",
        "cli/run",
        "msgspec.Raw(encode_result(result))",
        "msgspec.Raw(encode_result(msgspec.structs.replace(result, card=None)))",
        _JSON,
    ),
    Named(
        "refusals in Python that quote the value",
        "errors",
        "got {type(value).__name__}. {then}",
        "got {value!r}. {then}",
        _PYTHON,
    ),
    Named(
        "a repr that says where tables are",
        "job/model",
        "own sides of {len(self.own)}{",
        "own sides of {dict(self.own)}{",
        _PYTHON,
    ),
)

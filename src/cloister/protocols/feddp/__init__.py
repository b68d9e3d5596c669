"""FedDP-KMeans: private k-means of records that several parties hold, with public data at the server.

After "Differentially Private Federated k-Means with Server-Side Data" (anonymous authors, under review; published by
Scott, Lampert and Saulpic, 2025). The parties release noisy statistics of the union of their records, each a sum of
integer vectors, under masks that the coordinator cannot remove:

1. their second moments around the mean of the server's data, whose main directions span a subspace (step 1);
2. how many records are nearest to each of the server's points within the subspace: weights, by which these points are
   clustered at no further cost (step 2);
3. steps of Lloyd's algorithm, the first with records assigned in the subspace (step 3, then FedDP-Lloyds).

The paper assumes secure aggregation; here it is :mod:`cloister.protocols.guided_sums`. ``variant="tight"`` (default) is
ours: one scale of Gaussian noise for all rounds, all public values from the server's data, steps shrunk by their noise.
``variant="published"`` is Algorithms 1 and 2 with the splits of appendix G.4. `ExtraSteps` are those of appendix E,
up to the whole of Algorithm 5.

Threat model, who learns what, what breaks it: as for the synopsis (docs/proofs/feddp.md); the server's data are known
to all. A round may ask a public sample of the parties, and a party that was away is asked again.

Costs: 3 steps to agree on a seed, two per slot, three for the result (double masks: one more, and one more per slot). A
party sends 8 bytes per number: by default 1 + d (d + 3) / 2 + |Q| + 4 k (d + 2) numbers; it receives the questions, the
leader the totals as well.

Reading order: :mod:`.server`, :mod:`.options`, :mod:`.questions`, :mod:`.settings`, :mod:`.pipeline` with its steps
(:mod:`.initialisation`; :mod:`.reduction` for appendix E), :mod:`.published` with :mod:`.published_questions` and
:mod:`.published_noise`;
:mod:`.protocol` is the protocol object.
"""

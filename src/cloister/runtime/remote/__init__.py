"""Sessions between machines: one coordinator listens, parties dial out, one stream of messages for each.

Reading order: :mod:`.messages` (what is said), :mod:`.connection` (when it may be said: a state machine without I/O),
:mod:`.greeting` (who says it), :mod:`.chunks` and :mod:`.channel` (messages over any stream of bytes), :mod:`.hub` (the
coordinator's side of a run), :mod:`.participant` (a party's side), :mod:`.events` (what both tell an observer), and
last the files that know gRPC, :mod:`.grpc_server`, :mod:`.grpc_client` and :mod:`.grpc_log`.
"""

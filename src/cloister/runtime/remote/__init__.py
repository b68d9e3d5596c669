"""Sessions between machines: one coordinator listens, parties dial out, one stream of messages for each.

Reading order: :mod:`.messages` (what is said), :mod:`.connection` (when it may be said: a state machine without I/O),
:mod:`.greeting` (who says it), :mod:`.chunks` and :mod:`.channel` (messages over any stream of bytes), :mod:`.hub` (the
coordinator's side of a run), :mod:`.participant` (a party's side), and last the two files that know gRPC,
:mod:`.grpc_server` and :mod:`.grpc_client`.
"""

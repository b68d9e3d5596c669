"""The registry: one package per published system, and one line here for each protocol. The first is the default.

Each package reads like its paper: threat model, messages, party, coordinator. What the rest of Cloister needs from it
is one object (:mod:`cloister.protocol`).
"""

from cloister.protocol import register
from cloister.protocols.fastlloyd.protocol import FastLloyd
from cloister.protocols.feddp.protocol import Feddp
from cloister.protocols.multiparty_lloyd.protocol import MaskedCentroid, MaskedSumCount, MaskNoiseAverage, Naive
from cloister.protocols.secfc.protocol import Secfc
from cloister.protocols.synopsis.protocol import Synopsis
from cloister.protocols.vertical.protocol import Vertical

for protocol in (
    Synopsis(),
    Feddp(),
    FastLloyd(),
    Secfc(),
    Vertical(),
    Naive(),
    MaskedSumCount(),
    MaskedCentroid(),
    MaskNoiseAverage(),
):
    register(protocol)

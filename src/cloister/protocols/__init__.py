"""The registry: one package per published system, and one line here for each protocol. The first is the default.

Each package reads like its paper: threat model, messages, party, coordinator. What the rest of Cloister needs from it
is one object (:mod:`cloister.protocol`). Job files are checked against the options of all protocols, so their modules
are loaded at once and stay light. A protocol's object, and with it all that its roles need, is imported for the first
job that names it. That works because a package's ``__init__`` imports nothing.
"""

from functools import partial
from importlib import import_module
from typing import Any

from cloister.protocol import Clustering, register
from cloister.protocols.fastlloyd.options import FastLloydOptions
from cloister.protocols.feddp.options import FeddpOptions
from cloister.protocols.multiparty_lloyd.options import (
    MaskedCentroidOptions,
    MaskedSumCountOptions,
    MaskNoiseAverageOptions,
    NaiveOptions,
)
from cloister.protocols.secfc.options import SecfcOptions
from cloister.protocols.synopsis.options import SynopsisOptions
from cloister.protocols.vertical.options import VerticalOptions


def _make(package: str, name: str) -> Clustering[Any]:
    protocol: type[Clustering[Any]] = getattr(import_module(f"{__name__}.{package}.protocol"), name)
    return protocol()


for options, package, name in (
    (SynopsisOptions, "synopsis", "Synopsis"),
    (FeddpOptions, "feddp", "Feddp"),
    (FastLloydOptions, "fastlloyd", "FastLloyd"),
    (SecfcOptions, "secfc", "Secfc"),
    (VerticalOptions, "vertical", "Vertical"),
    (NaiveOptions, "multiparty_lloyd", "Naive"),
    (MaskedSumCountOptions, "multiparty_lloyd", "MaskedSumCount"),
    (MaskedCentroidOptions, "multiparty_lloyd", "MaskedCentroid"),
    (MaskNoiseAverageOptions, "multiparty_lloyd", "MaskNoiseAverage"),
):
    register(options, partial(_make, package, name))

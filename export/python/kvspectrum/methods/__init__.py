"""Every method is a file, of the name that a config gives it."""

from kvspectrum.layer import CalibratedLayer
from kvspectrum.methods.dropping import DroppingLayer
from kvspectrum.methods.elitekv import ElitekvLayer
from kvspectrum.methods.faedkv import FaedkvLayer
from kvspectrum.methods.freqkv import FreqkvLayer
from kvspectrum.methods.gqa import GqaLayer
from kvspectrum.methods.h2o import H2oLayer
from kvspectrum.methods.l2norm import L2normLayer
from kvspectrum.methods.lagkv import LagkvLayer
from kvspectrum.methods.snapkv import SnapkvLayer
from kvspectrum.methods.streaming import StreamingLayer

METHODS = {
    "full": CalibratedLayer,
    "streaming": StreamingLayer,
    "dropping": DroppingLayer,
    "freqkv": FreqkvLayer,
    "faedkv": FaedkvLayer,
    "elitekv": ElitekvLayer,
    "lagkv": LagkvLayer,
    "h2o": H2oLayer,
    "snapkv": SnapkvLayer,
    "l2norm": L2normLayer,
    "gqa": GqaLayer,
}

# What __getattr__() of the package finds.
from kvspectrum.cache import CalibratedCache as CalibratedCache
from kvspectrum.capture import Capture as Capture
from kvspectrum.commands import compare as compare
from kvspectrum.commands import evaluate as evaluate
from kvspectrum.commands import info as info
from kvspectrum.commands import recommend as recommend
from kvspectrum.commands import spectrum as spectrum
from kvspectrum.comparisons import Comparison as Comparison
from kvspectrum.comparisons import Recommendation as Recommendation
from kvspectrum.config_file import Config as Config
from kvspectrum.model_info import ModelInfo as ModelInfo
from kvspectrum.press import press_from_config as press_from_config
from kvspectrum.programs import ProgramError as ProgramError
from kvspectrum.reader.error import ConfigError as ConfigError
from kvspectrum.results import Evaluation as Evaluation
from kvspectrum.results import TaskEvaluation as TaskEvaluation
from kvspectrum.results import TraceEvaluation as TraceEvaluation
from kvspectrum.spectra import Spectra as Spectra

__version__: str

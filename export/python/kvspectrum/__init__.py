# SPDX-License-Identifier: Apache-2.0
"""kvspectrum: analyses and calibrates the key-value caches of language models.

The functions run the programs kvspectrum and kvcalibrate and return their results. CalibratedCache runs a calibrated
cache in Transformers. Names are imported when they are used: only CalibratedCache and press_from_config need torch and
Transformers, only Capture and Spectra.power() h5py.
"""

from importlib import import_module

_MODULES = {
    "CalibratedCache": "kvspectrum.cache",
    "Capture": "kvspectrum.capture",
    "Comparison": "kvspectrum.comparisons",
    "Config": "kvspectrum.config_file",
    "ConfigError": "kvspectrum.reader.error",
    "Evaluation": "kvspectrum.results",
    "ModelInfo": "kvspectrum.model_info",
    "ProgramError": "kvspectrum.programs",
    "Recommendation": "kvspectrum.comparisons",
    "Spectra": "kvspectrum.spectra",
    "TaskEvaluation": "kvspectrum.results",
    "TraceEvaluation": "kvspectrum.results",
    "compare": "kvspectrum.commands",
    "evaluate": "kvspectrum.commands",
    "info": "kvspectrum.commands",
    "press_from_config": "kvspectrum.press",
    "recommend": "kvspectrum.commands",
    "spectrum": "kvspectrum.commands",
}
__all__ = list(_MODULES)


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("kvspectrum")
        except PackageNotFoundError as error:  # a source tree on sys.path
            raise AttributeError("kvspectrum is not installed, so its version is not known") from error
    if name not in _MODULES:
        raise AttributeError(f"module 'kvspectrum' has no attribute '{name}'")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise ImportError(f"{name} needs {error.name}: pip install 'kvspectrum[transformers]'") from error


def __dir__():
    return [*globals(), *__all__]

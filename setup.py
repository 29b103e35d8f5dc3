"""Package metadata of fairseq_milk. `scripts/setup.sh` installs it with everything it needs."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
PYTHONS = ("3.10", "3.11", "3.12")
LIVE = ["subword-nmt", "sacremoses", "sentencepiece", "prompt_toolkit>=3"]  # text of exported models, and a terminal
TRAIN = [
    # Both give the import package `fairseq`; the first cannot be imported on Python 3.11 and later.
    'fairseq==0.12.2; python_version < "3.11"',
    'fairseq-fixed==0.12.3.1; python_version >= "3.11"',
    "torch>=2.0",
    "sacrebleu>=2.3",
    "matplotlib",
    "PyYAML",
    "jinja2",  # both for the report
    "pillow",
    "tabulate",
    "onnx>=1.16",  # both for `fairseq-milk export`
    "onnxscript",
    *LIVE,
]
SERVE = [*LIVE, "starlette>=0.46", "uvicorn>=0.35", "websockets>=15"]
TEST = ["pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "ruff", "mypy", "types-PyYAML", "pyte", "selenium"]


def read_version() -> str:
    """The version, read as text: importing the package would need torch and fairseq at build time."""
    text = (ROOT / "fairseq_milk" / "version.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.MULTILINE)
    if match is None:
        raise RuntimeError('fairseq_milk/version.py has no line `__version__ = "..."`')
    return match.group(1)


def read_readme() -> str:
    readme = ROOT / "README.md"
    return readme.read_text(encoding="utf-8") if readme.is_file() else ""


setup(
    name="fairseq-milk",
    version=read_version(),
    description="Simultaneous translation with monotonic infinite lookback attention (MILk), a plugin for fairseq",
    long_description=read_readme(),
    long_description_content_type="text/markdown",
    author="fairseq_milk contributors",
    license="MIT",
    license_files=["LICENSE"],
    keywords=["simultaneous translation", "monotonic attention", "MILk", "fairseq"],
    project_urls={
        "Paper": "https://aclanthology.org/P19-1126/",
        "fairseq": "https://github.com/facebookresearch/fairseq",
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: MIT License",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: {version}" for version in PYTHONS),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["fairseq_milk", "fairseq_milk.*"]),
    package_data={"fairseq_milk": ["py.typed", "analysis/templates/*", "live/page/*"]},
    zip_safe=False,
    python_requires=">=3.10,<3.13",
    install_requires=["numpy", "onnxruntime>=1.19"],  # enough to run an exported model
    extras_require={
        "live": LIVE,
        "train": TRAIN,
        "europarl": ["sentence-splitter", "HanTa", "eflomal"],  # examples/europarl_de_en
        "simuleval": ["SimulEval==1.1.4"],
        "docs": ["mkdocs-material==9.8.1", "latex2mathml==3.81.1"],  # scripts/docs.sh
        "serve": SERVE,
        "test": [*TEST, "sentence-splitter", *SERVE],
    },
    entry_points={"console_scripts": ["fairseq-milk=fairseq_milk.cli:main"]},
)

"""Where the published files are: pinned by commit and checksum, never redistributed.

Most of the sources state no licence, so the files are downloaded from upstream on the
user's behalf and none is part of this package. The checksums stand in ``checksums.txt``,
in the form that ``sha256sum --check`` reads in the data directory.
"""

from importlib.resources import files
from typing import NamedTuple

_RAW = "https://raw.githubusercontent.com"
_MEDIA = "https://media.githubusercontent.com/media"  # where Git LFS files are
_COHERENT = (
    f"{_RAW}/maxrubintoles/Conformal_LM_Reasoning/"
    "d864168bd1fdbe41ee60fbab23fa17673feb634e/data/archive"
)
_PARC = f"{_RAW}/SagnikMukherjee/PARC/684ec17f4ecf720ebb85724af2e5e2cef6a63ea6/datasets"
_REFCHECKER = (
    f"{_RAW}/amazon-science/RefChecker/1df1b25cee792ba2b171302e31ca4f768bd67703/"
    "benchmark/human_annotations_v1"
)

#: Folder below the data directory -> the folder that it mirrors.
_FOLDERS = {
    "coherent_factuality": f"{_COHERENT}/annotated",
    "coherent_factuality/misc": f"{_COHERENT}/misc",
    "perl/gsm8k": f"{_PARC}/gsm8k",
    "perl/math": f"{_PARC}/math",
    "perl/metamathqa": f"{_PARC}/metamathqa",
    "perl/orca_math": f"{_PARC}/orca_math",
    "process_bench": f"{_PARC}/process_bench",
    "conformal_factuality": (
        f"{_RAW}/tatsu-lab/conformal-factual-lm/"
        "6022b4c90c6580f524f123b0cb97bbb61ab621d1/out"
    ),
    "felm": f"{_RAW}/hkust-nlp/felm/1109166b20f1baafd71fd92e0f36af0a547e4158/eval",
    "prmbench": (
        f"{_RAW}/ssmisya/PRMBench/a1ae4eab803e14c4c6316bf89d1679b0486faa8c/"
        "mr_eval/tasks/prmtest_classified/data"
    ),
    "mr_ben": f"{_RAW}/dvlab-research/Mr-Ben/6eb1eca8861be411838c7c1c189dba208c140e06/data",
    "gsm8k_solutions": (
        f"{_RAW}/openai/grade-school-math/3101c7d5072418e28b9008a6636bde82a006892c/"
        "grade_school_math/data"
    ),
    "refchecker/accurate_context": f"{_REFCHECKER}/accurate_context",
    "refchecker/noisy_context": f"{_REFCHECKER}/noisy_context",
    "refchecker/zero_context": f"{_REFCHECKER}/zero_context",
    "prm800k": (
        f"{_MEDIA}/openai/prm800k/7ecc794703b2877f63226f2477a49b34f9b25163/prm800k/data"
    ),
}


class Source(NamedTuple):
    """One published file."""

    url: str
    checksum: str  # SHA-256, or of 40 digits: the SHA-1 of the git blob


def _read_sources():
    lines = files(__package__).joinpath("checksums.txt").read_text("ascii").split("\n")
    rows = (line.split() for line in lines if line)
    places = ((checksum, name, *name.rpartition("/")[::2]) for checksum, name in rows)
    return {
        name: Source(f"{_FOLDERS[folder]}/{file}", checksum)
        for checksum, name, folder, file in places
    }


#: Path below the data directory -> where the file comes from.
SOURCES = _read_sources()

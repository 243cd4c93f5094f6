"""Where the published files are: pinned by commit and checksum, never redistributed.

Most of the sources state no licence, so the files are downloaded from upstream on the
user's behalf and none is part of this package.
"""

from typing import NamedTuple

_HOST = "https://raw.githubusercontent.com"
_COHERENT = (
    f"{_HOST}/maxrubintoles/Conformal_LM_Reasoning/"
    "d864168bd1fdbe41ee60fbab23fa17673feb634e"
)
_PARC = f"{_HOST}/SagnikMukherjee/PARC/684ec17f4ecf720ebb85724af2e5e2cef6a63ea6"
_FACTUAL = (
    f"{_HOST}/tatsu-lab/conformal-factual-lm/6022b4c90c6580f524f123b0cb97bbb61ab621d1"
)
_FELM = f"{_HOST}/hkust-nlp/felm/1109166b20f1baafd71fd92e0f36af0a547e4158"


class Source(NamedTuple):
    """One published file."""

    url: str
    sha256: str


#: Path below the data directory -> where the file comes from.
SOURCES = {
    "coherent_factuality/MATH_annotations.json": Source(
        f"{_COHERENT}/data/archive/annotated/MATH_annotations.json",
        "c189c6dbe2aa965e390754c86d9f805acefd36ec8078be5968348739fa16888f",
    ),
    "perl/gsm8k/gsm8k_negatives.json": Source(
        f"{_PARC}/datasets/gsm8k/gsm8k_negatives.json",
        "4a0f4d750c3a3ded48f51db2da59127cea2909dbe7baa4aa06d42affd8160ca4",
    ),
    "perl/gsm8k/gsm8k_positives.json": Source(
        f"{_PARC}/datasets/gsm8k/gsm8k_positives.json",
        "30b42ab35eacefbf77960721470c46f5243e511d0a7302044e0c17197746864c",
    ),
    "perl/gsm8k/gsm8k_positives_perturbed.json": Source(
        f"{_PARC}/datasets/gsm8k/gsm8k_positives_perturbed.json",
        "f01d66608f21e3ebde447fd9fe43de2a9ea76e0f77a99a8e21f6bfcb035d8aa3",
    ),
    "perl/math/math_negatives.json": Source(
        f"{_PARC}/datasets/math/math_negatives.json",
        "407e87690e2cec8006eb1f1586f74596f934f1ec7593776286aa5037d931d625",
    ),
    "perl/math/math_positives.json": Source(
        f"{_PARC}/datasets/math/math_positives.json",
        "4a22d268c9bdd77adf746aaab524e6ddf3083c720d781a00cd96c7f2f1c6a824",
    ),
    "perl/math/math_positives_perturbed.json": Source(
        f"{_PARC}/datasets/math/math_positives_perturbed.json",
        "55a2fb2b4daa128b7647d19710fca45ed04007a5277ffff1fc7d96282adc168e",
    ),
    "conformal_factuality/factscore_subclaims_with_scores.jsonl": Source(
        f"{_FACTUAL}/out/factscore_subclaims_with_scores.jsonl",
        "f296834632fbba05eab2d4e4d52056a898f6041ab0090c1239a1303e2f7bd385",
    ),
    "conformal_factuality/nq_subclaims_with_scores.jsonl": Source(
        f"{_FACTUAL}/out/nq_subclaims_with_scores.jsonl",
        "4b707b4883e2500655876f59bc8fb45857cc5e45e90418b5a770310960f18642",
    ),
    "conformal_factuality/MATH_subclaims_with_scores.jsonl": Source(
        f"{_FACTUAL}/out/MATH_subclaims_with_scores.jsonl",
        "dae5930bf20b0b2fc7719f28900d5b582e7c5a9f5cbe329d46e4e0ae2788cd37",
    ),
    "felm/all.jsonl": Source(
        f"{_FELM}/eval/all.jsonl",
        "0dec248e1960719aa7da76a58bbaf06e660290f61a2aafbfa927ad9135ccddaa",
    ),
    "coherent_factuality/MATH_open_annotations.json": Source(
        f"{_COHERENT}/data/archive/annotated/MATH_open_annotations.json",
        "ccb11a94be2f26183eae7e31465d1a6cc18abb6f80241a3cb6a04b11bb104b48",
    ),
    "coherent_factuality/MATH_open_subclaims_with_scores.json": Source(
        f"{_COHERENT}/data/archive/annotated/MATH_open_subclaims_with_scores.json",
        "e2b1254827a6fe42a85ce925cfd753465be9819fd9174f339f760b0215a9e7af",
    ),
    "coherent_factuality/misc/MATH_open_subclaims_with_scores.json": Source(
        f"{_COHERENT}/data/archive/misc/MATH_open_subclaims_with_scores.json",
        "9be43e058bfc5c91548e09ab182ba5133f13cfc462cbbff3732db53ab941a067",
    ),
    "perl/metamathqa/metamathqa_negatives.json": Source(
        f"{_PARC}/datasets/metamathqa/metamathqa_negatives.json",
        "174d72ee312886700d3d8d878ba9c4157e1c5fe70ca5398562deb23cbc9eca5e",
    ),
    "perl/metamathqa/metamathqa_positives.json": Source(
        f"{_PARC}/datasets/metamathqa/metamathqa_positives.json",
        "6cc03b65705a374ac524942b40adc4ac07cf7827869258ffd36c2633ff22e74a",
    ),
    "perl/metamathqa/metamathqa_positives_perturbed.json": Source(
        f"{_PARC}/datasets/metamathqa/metamathqa_positives_perturbed.json",
        "ead039195fd68d56907911642ed7af7f0d53b0e0f7a0a57a214e321fb58ed528",
    ),
    "perl/orca_math/orcamath_negatives.json": Source(
        f"{_PARC}/datasets/orca_math/orcamath_negatives.json",
        "c68c7960a539a2e36d03b47b57dcbf902b311e03f447066c7c422c1c83c3c795",
    ),
    "perl/orca_math/orcamath_positives.json": Source(
        f"{_PARC}/datasets/orca_math/orcamath_positives.json",
        "2a722c1f807ea6cb2fd700f2fef54f35e3ba345381ce75b4508039281ba52bb1",
    ),
    "perl/orca_math/orcamath_positives_perturbed.json": Source(
        f"{_PARC}/datasets/orca_math/orcamath_positives_perturbed.json",
        "d8f56127fcd570ddcd0fd05a86faadcf39de7fa9eafd46ac1a87a6917fbf4ff3",
    ),
}

"""What the service takes and gives: one model for each request and each reply."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Texts = list[str]
Alpha = Annotated[
    float | None,
    Field(
        gt=0,
        description="The accepted share of answers that keep something false, or the bound "
        "of the filter's own guarantee. Without it the filter's own level is used.",
    ),
]
FilterName = Annotated[
    str | None,
    Field(
        description="Which filter decides, if several are served: the name of its file "
        "without the ending."
    ),
]
Messages = Annotated[
    list[dict[str, Any]] | None,
    Field(
        description="Messages of a chat. Each is sent once: those since the ones that were "
        "sent before, up to that of the step."
    ),
]
Question = Annotated[str | None, Field(description="The question.")]
Context = Annotated[
    Texts | str | None,
    Field(
        description="The passages that have to support the answer; an empty list says that "
        "there are none."
    ),
]
Alternatives = Annotated[
    Texts | None, Field(description="Texts of other answers to the question.")
]
FeatureNames = Annotated[
    Texts | None, Field(description="Name of each feature column, all different.")
]
Group = Annotated[
    str | int | None,
    Field(description="What names the question, if its text does not."),
]
Metadata = Annotated[
    dict[str, Any] | None,
    Field(description="Whatever else belongs to the answer."),
]
Position = Annotated[int, Field(ge=0)]
RunId = Annotated[str, Field(description="The id of an open run.")]


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    def given(self, *left_out: str) -> dict[str, Any]:
        """Return what was sent, without some keys.

        Parameters
        ----------
        *left_out : str
            Keys that are not returned.

        Returns
        -------
        dict
        """
        return self.model_dump(exclude_unset=True, exclude=set(left_out))


class FilterRequest(_Request):
    """An answer in claims, as a line of JSON Lines has it.

    Other keys are kept as metadata.
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "question": "What is 2 + 2 + 1?",
                "claims": ["2 + 2 = 4.", "4 + 1 = 5."],
                "parents": [[], [0]],
            }
        },
    )

    id: Annotated[str | int | None, Field(description="A name for the answer.")] = None
    question: Question = None
    problem: Annotated[str | None, Field(description="Another name for question.")] = (
        None
    )
    claims: Annotated[
        Texts | None,
        Field(
            description="Text of each claim. At least one of claims and features is given."
        ),
    ] = None
    wordings: Annotated[
        list[Texts | None] | None,
        Field(
            description="All wordings of each claim, the claim itself first and the vaguest "
            "last. If the calibration answers had some, each wording is decided by itself."
        ),
    ] = None
    features: Annotated[
        list[list[float]] | None,
        Field(description="One row of numbers per claim, all rows equally long."),
    ] = None
    feature_names: FeatureNames = None
    parents: Annotated[
        list[list[Position]] | None,
        Field(description="Per claim the positions of the claims that it builds on."),
    ] = None
    edges: Annotated[
        list[Annotated[list[Position], Field(min_length=2, max_length=2)]] | None,
        Field(description="Instead of parents: pairs [parent, child] of positions."),
    ] = None
    context: Context = None
    alternatives: Alternatives = None
    group: Group = None
    metadata: Metadata = None
    alpha: Alpha = None
    filter: FilterName = None


class AnswerRequest(_Request):
    """A question, and what is known of an answer to it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "question": "What is 2 + 2 + 1?",
                "answer": "2 + 2 = 4. 4 + 1 = 5.",
            }
        }
    )

    question: Annotated[str, Field(description="The question.", pattern=r"\S")]
    answer: Annotated[
        str | None,
        Field(
            description="Without it the model writes the answer, as it wrote those that "
            "calibrated the filter."
        ),
    ] = None
    answers: Annotated[
        Texts | None,
        Field(
            min_length=1,
            description="Several answers to the question instead, of which the filter chooses "
            "one. It must be calibrated on answers that it chose among as many.",
        ),
    ] = None
    context: Context = None
    alternatives: Alternatives = None
    group: Group = None
    metadata: Metadata = None
    alpha: Alpha = None
    filter: FilterName = None


class LabelRequest(_Request):
    """What people say of the claims of an answer."""

    id: Annotated[str, Field(description="Of the answer, as it was replied.")]
    labels: Annotated[
        list[bool | Annotated[int, Field(ge=-1, le=1)]],
        Field(
            description="For each claim 1 or true if it is true, 0 or false if it is false, "
            "and -1 if nobody knows."
        ),
    ]
    sampling: Annotated[
        Literal["random", "reached"] | None,
        Field(
            description='"random" if the answer was drawn at random, "reached" if it has no '
            "claims and the draw came to it. Other labels do not count for the monitor."
        ),
    ] = None


class RunRequest(_Request):
    """What is known before the first step of an agent's run."""

    messages: Messages = None
    question: Question = None
    context: Context = None
    alternatives: Alternatives = None
    feature_names: FeatureNames = None
    group: Group = None
    metadata: Metadata = None
    alpha: Alpha = None
    filter: FilterName = None


class StepRequest(_Request):
    """The next step of a run, or one that is sent again since its reply was lost."""

    run: RunId
    claim: Annotated[
        Position, Field(description="The position of the step, from 0 on.")
    ]
    messages: Messages = None
    text: Annotated[
        str | None,
        Field(description="What the agent says, if the run has no messages."),
    ] = None
    features: Annotated[
        list[float] | None, Field(description="Its row of numbers, likewise.")
    ] = None
    parents: Annotated[
        list[Position] | None,
        Field(
            description="What it builds on, the step before it included. Without it, that "
            "step alone."
        ),
    ] = None


class CloseRequest(_Request):
    """The run that is over."""

    run: RunId


class Decided(BaseModel):
    """What is kept of an answer."""

    id: Annotated[str, Field(description="Of this answer, for labels.")]
    alpha: Annotated[float, Field(description="The level at which this was decided.")]
    mask: Annotated[list[bool], Field(description="For each claim whether it is kept.")]
    text: Annotated[
        str | None,
        Field(description="The kept claims, one a line; null if they have no texts."),
    ]
    passes: Annotated[
        bool,
        Field(
            description="Whether the answer passes. If the filter has a share of answers that "
            "may pass, the guarantee is about these, and nothing is kept of the others."
        ),
    ]
    text_guarantee: Annotated[
        Literal["claims", "none"],
        Field(
            description='"claims" if the guarantee covers the text, "none" if nothing is '
            "guaranteed for it."
        ),
    ]
    origin: Annotated[
        Literal["as calibrated", "unknown"],
        Field(description="Whether the claims are known to be made as in calibration."),
    ]


class Filtered(Decided):
    """What is kept of an answer, and why the rest was dropped."""

    reasons: Annotated[
        dict[str, str],
        Field(description="Why a claim was dropped, by its position, from 0 on."),
    ]


class Dropped(BaseModel):
    """A claim that was dropped."""

    claim: Annotated[int, Field(description="Its position, from 0 on.")]
    text: str
    reason: str


class Spent(BaseModel):
    """What models were asked for an answer."""

    calls: int
    prompt_tokens: int
    completion_tokens: int


class Answered(Decided):
    """What is kept of an answer whose claims a model extracted and judged."""

    text: Annotated[
        str,
        Field(description="The kept claims as sentences, or one that says nothing is."),
    ]
    claims: Annotated[
        Texts, Field(description="All claims of the answer, every wording of each.")
    ]
    abstained: Annotated[bool, Field(description="Whether nothing is kept.")]
    complete: Annotated[
        bool,
        Field(description="Whether the last claim is kept, most answers' conclusion."),
    ]
    error_probability: Annotated[
        float | None,
        Field(
            description="How likely something false is in the text: an estimate, not a "
            "guarantee. null if nothing is kept, or the scorer does not estimate it."
        ),
    ]
    chosen: Annotated[
        int | None,
        Field(description="Position of the answer that was chosen among several."),
    ] = None
    dropped: list[Dropped]
    flags: Annotated[Texts, Field(description="What was not as it should be.")]
    usage: Spent


class Labelled(BaseModel):
    """What became of labels; they are on disk."""

    said: str
    alarm: Annotated[
        bool,
        Field(description="Whether a guarantee is broken, as far as the labels show."),
    ]


class Opened(BaseModel):
    """A run that is open, and on disk."""

    run: str


class StepDecided(BaseModel):
    """The decision about a step, which is on disk."""

    claim: int
    keep: Annotated[
        bool,
        Field(
            description="Whether it may be carried out; false for every step after the "
            "first that may not."
        ),
    ]


class FilterState(BaseModel):
    """What a filter guarantees, and whether the labels speak against it."""

    alpha: float
    alarm: bool
    not_watched: Annotated[
        str | None,
        Field(description="Why labels cannot give an alarm, if they cannot."),
    ]
    guarantee: str
    filter: Annotated[str, Field(description="A digest; another filter has another.")]
    n_calibration: int
    calibrated: Annotated[str | None, Field(description="When its file was written.")]
    origin: Annotated[
        dict[str, Any] | None,
        Field(description="How the answers that calibrated it were made."),
    ]


class Health(BaseModel):
    """That the service lives, and without a token what it serves."""

    status: Literal["ok"]
    filters: dict[str, FilterState] | None = None


class Ready(BaseModel):
    """That a request would be taken now."""

    status: Literal["ok"]


class Refusal(BaseModel):
    """What is wrong, and what to do."""

    error: str

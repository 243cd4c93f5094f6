"""Pydantic models of the requests and replies of the service."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Texts = list[str]
Alpha = Annotated[
    float | None,
    Field(
        gt=0,
        description="The accepted share of answers with a false claim among the kept ones, or "
        "the level of the filter's guarantee if that is different. By default, the level of "
        "the filter.",
    ),
]
FilterName = Annotated[
    str | None,
    Field(
        description="The filter to use, if several are served: its file name without the "
        "extension."
    ),
]
Messages = Annotated[
    list[dict[str, Any]] | None,
    Field(
        description="Chat messages. Each message is sent once: send the new messages, up to "
        "and including that of the step."
    ),
]
Question = Annotated[str | None, Field(description="The question.")]
Context = Annotated[
    Texts | str | None,
    Field(
        description="The passages that must support the answer. An empty list means that "
        "there are none."
    ),
]
Alternatives = Annotated[
    Texts | None, Field(description="Texts of other answers to the question.")
]
FeatureNames = Annotated[
    Texts | None, Field(description="The names of the feature columns, all different.")
]
Group = Annotated[
    str | int | None,
    Field(
        description="An identifier of the question, if its text does not identify it."
    ),
]
Metadata = Annotated[
    dict[str, Any] | None,
    Field(description="Other data about the answer."),
]
Position = Annotated[int, Field(ge=0)]
RunId = Annotated[str, Field(description="The id of an open run.")]


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    def given(self, *left_out: str) -> dict[str, Any]:
        """Return the fields that were sent, except some.

        Parameters
        ----------
        *left_out : str
            Fields to leave out.

        Returns
        -------
        dict
        """
        return self.model_dump(exclude_unset=True, exclude=set(left_out))


class FilterRequest(_Request):
    """An answer, whole or as claims, in the format of a line of a JSON Lines file.

    Unknown keys are stored as metadata.
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
            description="The text of each claim. One of answer, claims and features is required."
        ),
    ] = None
    answer: Annotated[
        str | None,
        Field(
            description="The whole answer. Without claims, it is split into sentences as the "
            "calibration answers were."
        ),
    ] = None
    logprobs: Annotated[
        Any,
        Field(
            description="The log-probabilities of the tokens of the answer, as a chat completion "
            "returns them, if the calibration answers had them."
        ),
    ] = None
    wordings: Annotated[
        list[Texts | None] | None,
        Field(
            description="All wordings of each claim, the claim itself first and the vaguest "
            "last. If the calibration answers had wordings, each wording is decided separately."
        ),
    ] = None
    features: Annotated[
        list[list[float]] | None,
        Field(description="One row of numbers per claim, all of the same length."),
    ] = None
    feature_names: FeatureNames = None
    parents: Annotated[
        list[list[Position]] | None,
        Field(description="For each claim, the positions of the claims it depends on."),
    ] = None
    edges: Annotated[
        list[Annotated[list[Position], Field(min_length=2, max_length=2)]] | None,
        Field(description="Pairs [parent, child] of positions, instead of parents."),
    ] = None
    context: Annotated[
        list[str | dict[str, Any]] | str | None,
        Field(
            description="The passages that must support the answer, as texts or as objects with "
            "a text. An empty list means that there are none."
        ),
    ] = None
    alternatives: Alternatives = None
    group: Group = None
    metadata: Metadata = None
    alpha: Alpha = None
    filter: FilterName = None


class AnswerRequest(_Request):
    """A question, optionally with one or several answers to it."""

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
            description="The answer. If it is missing, the model writes it in the same way as "
            "the calibration answers."
        ),
    ] = None
    answers: Annotated[
        Texts | None,
        Field(
            min_length=1,
            description="Several answers to the question, of which the filter chooses one. The "
            "filter must be calibrated on answers that it chose from the same number.",
        ),
    ] = None
    context: Context = None
    alternatives: Alternatives = None
    group: Group = None
    metadata: Metadata = None
    alpha: Alpha = None
    filter: FilterName = None


class LabelRequest(_Request):
    """Labels of the claims of an answer."""

    id: Annotated[str, Field(description="The id of the answer in the reply.")]
    labels: Annotated[
        list[bool | Annotated[int, Field(ge=-1, le=1)]],
        Field(
            description="For each claim, 1 or true if it is true, 0 or false if it is false, "
            "and -1 if it is unknown."
        ),
    ]
    sampling: Annotated[
        Literal["random", "reached"] | None,
        Field(
            description='"random" if the answer was drawn at random, "reached" if it was drawn '
            "at random but has no claims. Other labels do not count for the monitor."
        ),
    ] = None


class RunRequest(_Request):
    """Data that is known before the first step of a run of an agent."""

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
    """The next step of a run, or an earlier step that is sent again."""

    run: RunId
    claim: Annotated[
        Position, Field(description="The position of the step, starting at 0.")
    ]
    messages: Messages = None
    text: Annotated[
        str | None,
        Field(description="The text of the step, if the run has no messages."),
    ] = None
    features: Annotated[
        list[float] | None,
        Field(
            description="The feature values of the step, if the run has no messages."
        ),
    ] = None
    parents: Annotated[
        list[Position] | None,
        Field(
            description="The positions of the steps it depends on, including the previous "
            "step. By default, only the previous step."
        ),
    ] = None


class CloseRequest(_Request):
    """A run to close."""

    run: RunId


class Decided(BaseModel):
    """A filtered answer."""

    id: Annotated[str, Field(description="The id of this answer, to send labels.")]
    alpha: Annotated[float, Field(description="The level of the decision.")]
    mask: Annotated[list[bool], Field(description="Whether each claim is kept.")]
    text: Annotated[
        str | None,
        Field(
            description="The kept claims, one per line, or in one line if a whole answer was "
            "sent; null if they have no texts."
        ),
    ]
    passes: Annotated[
        bool,
        Field(
            description="Whether the answer passes. If the filter lets a share of the answers "
            "pass, the guarantee covers only these, and nothing is kept of the others."
        ),
    ]
    text_guarantee: Annotated[
        Literal["claims", "none"],
        Field(
            description='"claims" if the guarantee covers the text, "none" if it does not.'
        ),
    ]
    origin: Annotated[
        Literal["as calibrated", "unknown"],
        Field(
            description="Whether the claims are known to be made in the same way as the "
            "calibration claims."
        ),
    ]


class Filtered(Decided):
    """A filtered answer with the reasons for dropped claims."""

    reasons: Annotated[
        dict[str, str],
        Field(
            description="The reason for each dropped claim, keyed by position, starting at 0."
        ),
    ]
    claims: Annotated[
        Texts | None,
        Field(description="The claims of a whole answer; null if claims were sent."),
    ] = None
    log_line: Annotated[
        dict[str, Any] | None,
        Field(
            description="The request with the filtered text in the place of the whole answer; "
            "null if claims were sent."
        ),
    ] = None


class Dropped(BaseModel):
    """A claim that was dropped."""

    claim: Annotated[
        int, Field(description="The position of the claim, starting at 0.")
    ]
    text: str
    reason: str


class Spent(BaseModel):
    """The calls and tokens used for an answer."""

    calls: int
    prompt_tokens: int
    completion_tokens: int


class Answered(Decided):
    """A filtered answer whose claims were extracted and judged by a model."""

    text: Annotated[
        str,
        Field(
            description="The kept claims as sentences, or a sentence that nothing is kept."
        ),
    ]
    claims: Annotated[
        Texts, Field(description="All claims of the answer, including all wordings.")
    ]
    abstained: Annotated[bool, Field(description="Whether nothing is kept.")]
    complete: Annotated[
        bool,
        Field(
            description="Whether the last claim is kept, which is usually the conclusion."
        ),
    ]
    error_probability: Annotated[
        float | None,
        Field(
            description="Estimated probability of a false claim in the text, which is not a "
            "guarantee. null if nothing is kept or the scorer does not estimate it."
        ),
    ]
    chosen: Annotated[
        int | None,
        Field(description="The position of the chosen answer, if several were sent."),
    ] = None
    dropped: list[Dropped]
    flags: Annotated[Texts, Field(description="Problems found while it was made.")]
    usage: Spent


class Labelled(BaseModel):
    """The result of sending labels, which are on disk."""

    said: str
    alarm: Annotated[
        bool,
        Field(description="Whether the labels are evidence of a violated guarantee."),
    ]


class Opened(BaseModel):
    """An open run, which is on disk."""

    run: str


class StepDecided(BaseModel):
    """The decision about a step, which is on disk."""

    claim: int
    keep: Annotated[
        bool,
        Field(
            description="Whether the step may be carried out; false for all steps after the "
            "first refused step."
        ),
    ]


class FilterState(BaseModel):
    """The guarantee of a filter, and the state of its monitor."""

    alpha: float
    alarm: bool
    not_watched: Annotated[
        str | None,
        Field(description="Why labels cannot raise an alarm, if they cannot."),
    ]
    guarantee: str
    filter: Annotated[str, Field(description="A digest that identifies the filter.")]
    n_calibration: int
    calibrated: Annotated[str | None, Field(description="When its file was written.")]
    origin: Annotated[
        dict[str, Any] | None,
        Field(description="How the calibration answers were made."),
    ]


class Health(BaseModel):
    """The status of the service, with its filters if it has no token."""

    status: Literal["ok"]
    filters: dict[str, FilterState] | None = None


class Ready(BaseModel):
    """The service can accept a request."""

    status: Literal["ok"]


class Refusal(BaseModel):
    """An error: what is wrong and what to do."""

    error: str

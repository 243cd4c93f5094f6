"""Pydantic models of the requests and replies of the service."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Texts = list[str]
Alpha = Annotated[
    float | None,
    Field(
        gt=0,
        description="Largest accepted share of answers with a kept false claim, or the level of "
        "the filter's guarantee if it bounds another quantity. By default, the level of the "
        "filter.",
    ),
]
Question = Annotated[str | None, Field(description="The question.")]
Alternatives = Annotated[
    Texts | None, Field(description="Texts of other answers to the question.")
]
FeatureNames = Annotated[
    Texts | None,
    Field(description="The names of the feature columns, which must be unique."),
]
Group = Annotated[
    str | int | None,
    Field(description="An identifier of the question, if its text is not unique."),
]
Metadata = Annotated[
    dict[str, Any] | None,
    Field(description="Additional data about the answer."),
]
Position = Annotated[int, Field(ge=0)]


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    def given(self) -> dict[str, Any]:
        """Return the fields that were sent.

        Returns
        -------
        fields : dict
            The fields, keyed by name.
        """
        return self.model_dump(exclude_unset=True)


class FilterRequest(_Request):
    """An answer to filter, given as text or as claims, in the format of a JSON Lines record.

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
    problem: Annotated[str | None, Field(description="Alias of question.")] = None
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
    features: Annotated[
        list[list[float]] | None,
        Field(description="One row of numbers per claim, all of the same length."),
    ] = None
    feature_names: FeatureNames = None
    parents: Annotated[
        list[list[Position]] | None,
        Field(description="The positions of the claims that each claim depends on."),
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


class LabelRequest(_Request):
    """Labels for the claims of an answer."""

    id: Annotated[str, Field(description="The id of the answer in the reply.")]
    labels: Annotated[
        list[bool | Annotated[int, Field(ge=-1, le=1)]],
        Field(
            description="The label of each claim: 1 or true for a true claim, 0 or false for a "
            "false claim, and -1 if the label is unknown."
        ),
    ]
    sampling: Annotated[
        Literal["random", "reached"] | None,
        Field(
            description='"random" if the answer was drawn at random, "reached" if it was drawn '
            "at random but has no claims. The monitor ignores all other labels."
        ),
    ] = None


class Decided(BaseModel):
    """A filtered answer."""

    id: Annotated[str, Field(description="The id of this answer, for sending labels.")]
    alpha: Annotated[float, Field(description="The level of the decision.")]
    mask: Annotated[list[bool], Field(description="Whether each claim is kept.")]
    text: Annotated[
        str | None,
        Field(
            description="The kept claims, with the layout of a whole answer, or one per line "
            "if claims without a layout were sent. null if there are no texts."
        ),
    ]
    passes: Annotated[
        bool,
        Field(
            description="Whether the answer passes. If only a share of the answers passes, the "
            "guarantee covers the passing answers, and no claim of other answers is kept."
        ),
    ]
    text_guarantee: Annotated[
        Literal["claims", "none"],
        Field(
            description='"claims" if the guarantee covers the text, otherwise "none".'
        ),
    ]
    origin: Annotated[
        Literal["as calibrated", "unknown"],
        Field(
            description="Whether the claims are known to be extracted in the same way as the "
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
            description="The request, in which the filtered text replaces the whole answer; "
            "null if claims were sent."
        ),
    ] = None


class Labelled(BaseModel):
    """Confirmation that labels have been saved to disk."""

    said: str
    alarm: Annotated[
        bool,
        Field(description="Whether the labels are evidence of a violated guarantee."),
    ]


class StepDecided(BaseModel):
    """The decision on a step, which has been saved to disk."""

    claim: int
    keep: Annotated[
        bool,
        Field(
            description="Whether the step may be executed. false for all steps after the "
            "first refused step."
        ),
    ]


class Status(BaseModel):
    """The filter's guarantee, and the state of its monitor."""

    alpha: float
    alarm: bool
    not_watched: Annotated[
        str | None,
        Field(description="Reason why labels cannot raise an alarm, or null."),
    ]
    guarantee: str
    filter: Annotated[str, Field(description="A digest that identifies the filter.")]
    n_calibration: int
    calibrated: Annotated[
        str | None,
        Field(description="Time at which the file of the filter was written."),
    ]
    origin: Annotated[
        dict[str, Any] | None,
        Field(description="Provenance of the calibration answers."),
    ]
    n_kept: Annotated[int, Field(description="Number of kept claims.")]
    n_dropped: Annotated[int, Field(description="Number of dropped claims.")]
    n_judged: Annotated[
        int, Field(description="Judged answers that the monitor has counted.")
    ]
    n_errors: Annotated[
        int, Field(description="Judged answers with a kept false claim.")
    ]
    wealth: Annotated[
        float,
        Field(
            description="Wealth of the monitor. Large values are evidence of a violation."
        ),
    ]


class Health(BaseModel):
    """Confirmation that the service is running."""

    status: Literal["ok"]


class Refusal(BaseModel):
    """An error message that explains what is wrong and what to do."""

    error: str

"""What protects the guarantee, one file for each way in which it can be lost silently."""

from .labels import warn_of_labels_among_columns as warn_of_labels_among_columns
from .priors import known_to_priors as known_to_priors
from .priors import refuse_known_questions as refuse_known_questions

"""Remove the thoughts of a model and its control tokens from the text of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Tags in backticks are part of the text.
_TAG = re.compile(
    r"(?i)(?<!`)(?:<(/?)(?:think|thinking|thought|thoughts|reasoning)>|\[(/?)think\]"
    r"|<\|channel\|>final(<\|message\|>))(?!`)"
)
_BEGIN = re.compile(
    r"\s*(?:<s>|<bos>|<\|begin_of_text\|>|<start_of_turn>model\b"
    r"|<\|im_start\|>(?:assistant\b)?|<\|start_header_id\|>assistant<\|end_header_id\|>)\s*"
)
# A text may go on after the end token with a message that the model made up.
_END = re.compile(
    r"(?<!`)(?:<\|(?:im_end|endoftext|eot_id|eom_id|end|end_of_text|end_of_turn|return|eos)\|>"
    r"|<end_of_turn>|<eos>|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>\s*\Z)(?!`)"
)


def without_thoughts(text: str) -> str:
    """Return an answer without thoughts and control tokens, or the same text if there are none.

    Thoughts are the text between two tags such as ``<think>`` and ``</think>``, and the text
    before an end tag or after a begin tag without a partner.
    """
    said = []
    start = 0
    is_thinking = False
    for tag in _TAG.finditer(text):
        if any(tag.groups()):
            said = said if is_thinking else []
            start = tag.end()
        elif not is_thinking:
            said.append(text[start : tag.start()])
        is_thinking = not any(tag.groups())
    said.append("" if is_thinking else text[start:])
    answer = "".join(said)
    if begin := _BEGIN.match(answer):
        answer = answer[begin.end() :]
    answer = _END.split(answer, maxsplit=1)[0]
    return text if answer == text else answer.strip()


def without_reasoning(parts: Any) -> list[Any]:
    """Return the parts of a message that do not contain reasoning."""
    kinds = ("reasoning", "thinking", "redacted_thinking")
    return [
        part
        for part in parts
        if not (isinstance(part, Mapping) and part.get("type") in kinds)
    ]

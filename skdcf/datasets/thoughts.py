"""Remove the thoughts of a model and its control tokens from the text of an answer."""

import re
from collections.abc import Mapping

# Tags in backticks are part of the text.
_TAG = re.compile(
    r"(?i)(?<!`)(?:<(/?)(?:(?:seed:)?think|thinking|thoughts?|reasoning)>|\[(/?)think\]"
    r"|\u25c1(/?)think\u25b7|<\|(?:begin|start|(end))_(?:of_thought|thinking)\|>"
    r"|<\|channel\|>final(<\|message\|>)|<\|start_(response)\|>)(?!`)"
)
# As in "The <think> tag is HTML."
_match_tag_in_line = re.compile(r"(?<=\w )<[\w:]+>(?=[^\S\n]*\S)").match
_BEGIN = re.compile(
    r"\s*(?:<s>|<bos>|<answer>|<\|begin_of_(?:text|solution)\|>|<start_of_turn>model\b"
    r"|<\|im_start\|>(?:assistant\b)?|<\|start_header_id\|>assistant<\|end_header_id\|>)"
)
# A text may go on after the end token with a message that the model made up.
_END = re.compile(
    r"(?i)(?<!`)(?:<\|[a-z_]{0,20}(?:end|eos|eot|eom|return)[a-z_]{0,20}\|>|<end_of_turn>|<eos>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>|</answer>|</s>\s*\Z)(?!`)"
)


def without_thoughts(text):
    """Return an answer without thoughts and control tokens, or the same text if there are none.

    Thoughts are the text between two tags such as ``<think>`` and ``</think>``, and the text
    before an end tag or after a begin tag without a partner. A begin tag without a partner, such
    as ``<think>``, is part of the text if it is between two words of a line. A later begin tag at
    another place still begins a thought.
    """
    said = []
    start = 0
    is_thinking = False
    for tag in _TAG.finditer(text):
        is_end = any(tag.groups())
        if is_end:
            said = said if is_thinking else []
            start = tag.end()
        elif not is_thinking or (
            _match_tag_in_line(text, start)
            and not _match_tag_in_line(text, tag.start())
        ):
            said.append(text[start : tag.start()])
            start = tag.start()
        is_thinking = not is_end
    said.append(
        "" if is_thinking and not _match_tag_in_line(text, start) else text[start:]
    )
    answer = "".join(said)
    if begin := _BEGIN.match(answer):
        answer = answer[begin.end() :]
    answer = _END.split(answer, maxsplit=1)[0]
    return text if answer == text else answer.strip()


def clean_texts(texts):
    """Remove thoughts and control tokens from a list of texts. Other values are returned as is."""
    if not isinstance(texts, list | tuple):
        return texts
    return [without_thoughts(text) if isinstance(text, str) else text for text in texts]


def is_cut_off(*places):
    """Return whether an answer was cut off, according to the first object that says why it ended.

    Each object in ``places`` contains the answer, and the innermost object comes first. The reason
    may be in the metadata of an object. If an object gives no reason, the answer was cut off if
    the ``status`` of the object is "incomplete".
    """
    # Servers use different keys and values, such as {"type": "length"} or "Reason.MAX_TOKENS". The
    # name of an enum and words for a missing value are not reasons.
    word = r"\b(?!(?:none|null|nan|false|type)\b)(?:finish_reason_)?([a-z_]++)(?!\.\w)"
    names = "response_metadata details generation_info info meta_info metadata"
    keys = (
        "finish_reason finish_reasons done_reason stop_reason finishReason stopReason"
    )
    ends = (
        "incomplete length max_tokens max_new_tokens max_output_tokens model_length "
        "model_context_window_exceeded"
    )
    for place in places:
        if not isinstance(place, Mapping):
            continue
        objects = [
            about if about is not None and isinstance(about, Mapping) else {}
            for about in (place, *map(place.get, names.split()))
        ]
        reasons = [
            {*re.findall(word, str(about[key]).lower())}
            for key in keys.split()
            for about in objects
            if key in about
        ]
        if any(reasons):
            # Several values in a list belong to several answers.
            return any(words and words <= {*ends.split()} for words in reasons)
        # In the other objects, "status" is a key of the user.
        if "incomplete" in [about.get("status") for about in objects[:2]]:
            return True
    return False


def without_reasoning(parts):
    """Return the parts of a message that do not contain reasoning."""
    kinds = ("reasoning", "thinking", "redacted_thinking")
    return [
        part
        for part in parts
        if not isinstance(part, Mapping)
        or not (part.get("type") in kinds or part.get("thought") is True)
    ]

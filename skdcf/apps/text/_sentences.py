"""Split a text into sentences without calling a model.

Each code block and each table row becomes one claim. All other lines are split into sentences by
sentencex, which recognises the abbreviations of many languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..._checks import import_extra

_LANGUAGE = re.compile(r"[a-z]{2,3}")
#: Number or formula. A mark before it may be a sign, as in "- 5" and "> $x$", and is part of the
#: claim.
_AMOUNT = r"\s*(?!\d{1,9}[.)]\s)(?:[^\w\s>]*[\d\u00bc-\u00be\u2150-\u215f\u221e]|[$\\])"
_MARKER = re.compile(
    rf"(?:\s*>(?!{_AMOUNT}))*\s*"
    rf"(?:[-*](?!{_AMOUNT})\s+|\u2022\s+|(?P<number>\d{{1,9}})[.)]\s+)?(?=.)",
    re.S,
)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
#: Lines that begin a multi-line formula.
_FORMULA = re.compile(r"\s*(\$\$|\\\[|\\begin\{(?P<name>\w+\*?)\})\s*(?:\{[^}]*\})?\s*")
#: Pattern for a horizontal rule, either between table rows or between parts of a text.
_RULE = re.compile(
    r"(?:[|+:\s]*[-=]{3}[-=|+:\s]*|\|?(?:\s*:?-+:?\s*\|)+[-:\s]*|"
    r"(?P<mark>[-*_])(?:\s*(?P=mark)){2,}\s*)"
)
#: Pattern for text that belongs to the next sentence and is not a sentence by itself, such as
#: "Step 2." and "M.".
_NUMBER = re.compile(
    r"(?:#{1,6}\s+)?(?:(?:[Ss]tep|[Ss]chritt|[ÉéEe]tape|[Pp]aso|[Cc]ase|[Ff]all|[Pp]art|[Tt]eil)\s+)?\d+[.)]"
    r"|[A-Z]\."
)
#: Abbreviations that precede a number, such as "Eq." in "Eq. 4".
_CITED = re.compile(
    r"\b(?:[Ee]qs?|[Ss]ecs?|[Tt]hm|[Dd]ef|[Pp]rop|[Ll]em|[Cc]or|[Tt]ab|[Aa]lg|[Vv]ol|"
    r"[Aa]pprox|[Cc]a|[Pp]\u00e1g|[Aa]rt|[Kk]l|o\.a)\.\s*$"
)
#: Abbreviations that never end a sentence, even if a capital letter follows, as in "e.g. No. 5".
_INTRODUCES = re.compile(r"\b(?:e\.\s?g|i\.\s?e|viz)\.\s*$", re.I)
#: Pattern for German ordinal numbers, as in "der 2. Weltkrieg".
_ORDINAL = re.compile(
    r"\b(?:d(?:er|ie|as|en|em|es)|im|am|vom|zum|zur|beim|bis|seit|ab)\s+\d{1,2}\.\s*$",
    re.I,
)
#: Markdown marks that belong to the preceding sentence.
_MARKS = re.compile(r"[*_~]+(?:\s+|$)")
_LINE = re.compile(r"(?s).+?(?:\n\s*|\Z)")
_WIDE = re.compile(r"[^\S\x00-\x7f]")
_CLOSES = "$)]}\u00bb\u201d\u2019\"'"


def split_sentences(
    answer: str, problem: str | None = None, *, language: str = "en"
) -> list[str]:
    """Split an answer into lines and sentences without calling a model.

    Use this function instead of `Decompose` for answers with one claim per line or sentence. A
    fenced code block or a table row is a single claim. Horizontal rules are ignored.

    Parameters
    ----------
    answer : str
        The text to split.
    problem : str, optional
        Ignored.
    language : str
        ISO 639 code of the language, such as "en" or "de". The language determines which
        abbreviations do not end a sentence, and is recorded in the provenance. For example, pass
        ``functools.partial(split_sentences, language="de")`` as ``decompose`` for answers in
        German.

    Returns
    -------
    claims : list of str
        The claims, in order.

    Raises
    ------
    ValueError
        If ``language`` is not an ISO 639 code.
    ImportError
        If sentencex is not installed. The extra ``apps`` installs sentencex.

    Examples
    --------
    >>> from skdcf.apps.text import split_sentences
    >>> split_sentences("Half of 7 is 3.5, says Dr. Lee. Twice that is 7.\\n- So it is 7")
    ['Half of 7 is 3.5, says Dr. Lee.', 'Twice that is 7.', 'So it is 7']
    """
    return sentences_with_layout(answer, language)[0]


def sentences_with_layout(
    answer: str, language: str = "en"
) -> tuple[list[str], list[Any]]:
    """Split an answer into sentences, and return the text between them.

    Parameters
    ----------
    answer : str
        The text to split.
    language : str
        Language code, as in `split_sentences`.

    Returns
    -------
    sentences : list of str
        The sentences, as returned by `split_sentences`.
    layout : list of (str or list of str)
        The text before each sentence, followed by the text after the last sentence. The text
        consists of line breaks, markers of list items, and horizontal rules. The entry for a
        code block whose line breaks are not all ``"\\n"`` is a list, which also contains these
        line breaks.
    """
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise ValueError(
            f"language must be an ISO 639 code, such as 'en' or 'de', got {language!r}"
        )
    # Unpaired surrogates are replaced.
    answer = answer.encode("utf-8", "replace").decode()
    sentences: list[str] = []
    layout: list[Any] = []
    end = 0
    for start, block, is_whole in _blocks(answer):
        for piece in [block] if is_whole else pieces_of(block, language):
            if sentence := piece.strip():
                first = start + len(piece) - len(piece.lstrip())
                before = answer[end:first]
                end = first + len(sentence)
                sentences.append("\n".join(sentence.splitlines()))
                is_changed = sentence != sentences[-1]
                breaks = _line_breaks(sentence)
                layout.append([before, *breaks] if is_changed else before)
            start += len(piece)
    return sentences, [*layout, answer[end:]]


def pieces_of(text: str, language: str = "en") -> list[str]:
    """Split a text after each line and each sentence, without changing or removing characters.

    Parameters
    ----------
    text : str
        The text to split.
    language : str
        Language code, as in `split_sentences`.

    Returns
    -------
    pieces : list of str
        The pieces of the text, each including its trailing whitespace.
    """
    segment = import_extra("sentencex", "apps").segment
    # Replace multi-byte whitespace such as in "z.\u00a0B.", because it causes a panic in
    # sentencex 1.1.
    plain_text = _WIDE.sub(" ", text).encode("utf-8", "replace").decode()
    pieces: list[str] = []
    start = 0
    for line in _LINE.findall(plain_text):
        for sentence in _sentences(segment(language, line), language):
            piece = text[start : start + len(sentence)]
            start += len(sentence)
            if pieces and piece.isspace():
                pieces[-1] += piece
            else:
                pieces.append(piece)
    return pieces


def splitter_of(language: str = "en") -> dict[str, str]:
    """Return the splitter and the language that are recorded in the provenance of claims.

    Parameters
    ----------
    language : str
        Language code, as in `split_sentences`.

    Returns
    -------
    splitter : dict of str to str
        Splitter name and language code.
    """
    return {"splitter": "sentencex", "language": language}


def _blocks(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the start and the text of each line or code block, and whether it is one claim."""
    lines = text.splitlines()
    rows = _rows_of_tables(lines)
    fence = ""
    numbers = {-1, 0}
    start = end = 0
    for number, whole_line in enumerate(text.splitlines(keepends=True)):
        line = lines[number]
        begun = _FENCE.match(line) or _FORMULA.fullmatch(line)
        if not fence:
            start = end
        end += len(whole_line)
        if fence:
            if _ends(line.strip(), fence):
                yield start, text[start:end], True
                fence = ""
        elif begun:
            fence = begun[1]
        elif line.strip() and not _is_rule(line):
            in_table = number in rows
            sentences = line if in_table else _without_marker(line, numbers)
            start += len(line.rstrip()) - len(sentences.rstrip())
            yield start, sentences, in_table
    if fence:  # The answer was truncated within a code block.
        yield start, text[start:], True


def _without_marker(line: str, numbers: set[int]) -> str:
    """Return a line without the marker of a list item.

    A number is a marker only if the list begins with it or an earlier marker is one smaller. Any
    other number may be part of the claim, as in "12. apples". ``numbers`` contains the numbers of
    the markers so far, to which the number of this line is added.
    """
    marker = _MARKER.match(line)
    if marker is None:
        return ""
    end = marker.end()
    if marker["number"] is not None:
        number = int(marker["number"])
        if number - 1 in numbers:
            numbers.add(number)
        else:
            end = marker.start("number")
    return line[end:].strip() or line.strip()  # A marker without a text is a claim.


def _line_breaks(text: str) -> list[str]:
    """Return the line breaks in a text."""
    pairs = zip(text.splitlines(), text.splitlines(keepends=True), strict=True)
    return [whole_line.removeprefix(line) for line, whole_line in pairs][:-1]


def _ends(line: str, begin: str) -> bool:
    """Return whether a line ends the code block or formula that begins with ``begin``."""
    if begin[0] in "`~":
        return line.startswith(begin) and not line.strip(begin[0])
    end = {"$$": "$$", "\\[": "\\]"}.get(begin, begin.replace("begin", "end"))
    return line.rstrip(".,;").endswith(end)


def _is_rule(line: str) -> bool:
    """Return whether a line is a horizontal rule."""
    return _RULE.fullmatch(line.strip()) is not None


def _rows_of_tables(lines: list[str]) -> set[int]:
    """Return the line numbers of table rows, which are recognised by bars and horizontal rules."""
    rows = set()
    below = False
    for number, line in enumerate(lines):
        is_row = "|" in line and not _is_rule(line)
        if "|" in line and _is_rule(line):
            below = True
            rows.add(number - 1)
        elif is_row and (below or line.strip()[0] == line.strip()[-1] == "|"):
            rows.add(number)
        else:
            below = False
    return rows


def _sentences(pieces: list[str], language: str) -> Iterator[str]:
    """Yield the sentences of a line, joining pieces split after a number or within a formula."""
    sentence = ""
    for piece in pieces:
        marks = _MARKS.match(piece)
        if sentence and not sentence[-1].isspace() and marks:
            yield sentence + marks[0]
            sentence = ""
            piece = piece[marks.end() :]
            if not piece:
                continue
        is_inside = (
            bool(sentence) and not sentence[-1].isspace() and piece[0] in _CLOSES
        )
        is_inside |= sentence.count("~~") % 2 == 1  # Struck text is one claim.
        is_cited = (
            bool(_CITED.search(sentence)) and piece[0] in "(0123456789$\u20ac\u00a3"
        )
        is_begun = bool(_NUMBER.fullmatch(sentence.strip()))
        is_begun |= bool(_INTRODUCES.search(sentence))
        is_begun |= language == "de" and bool(_ORDINAL.search(sentence))
        if sentence and not (is_inside or is_cited or is_begun):
            yield sentence
            sentence = ""
        sentence += piece
    yield sentence


def join(claims: Sequence[str]) -> str:
    """Return the unchanged claims as sentences on one line.

    Parameters
    ----------
    claims : sequence of str
        Claim texts, such as the claims that a filter keeps, in order.

    Returns
    -------
    text : str
        The claims, each of which ends with a punctuation mark.

    Examples
    --------
    >>> from skdcf.apps.text import join
    >>> join(["2 + 2 = 4", "So it is even."])
    '2 + 2 = 4. So it is even.'
    """
    texts = (text.strip() for text in claims)
    return " ".join(t if t.endswith((".", "!", "?")) else f"{t}." for t in texts if t)

"""Split a paragraph into sentences.

Sentences are split by sentencex, which recognises the abbreviations of many languages. No sentence
ends within a formula or brackets.
"""

import re
from itertools import accumulate

from sentencex import segment

#: Find a place within a sentence, marked by "\0", at which sentencex ends a sentence.
_is_within = re.compile(
    r"""(?xs) [^\0]*? (?:
      # numbers and initials that begin the next sentence, such as "Step 2." and "M."
      (?:\A|:\s+) (?:\#{1,6}\s+)? [*_]{0,3}
      (?: (?:(?i:step|schritt|[ée]tape|paso|case|fall|part|teil)\s+)? \d+[.)]
        | (?:[A-Z]|[IVX]+)\. ) \s*\0
      # abbreviations, which have at most six characters before the last period
      | \b (?=.{1,6}\.\s*\0) (?:
        # abbreviations that never end a sentence
        (?i:e\.\s?g|i\.\s?e|viz)\.\s*\0
        # titles and names of parts, also before words such as "No" and "Who", but not in
        # "M&Ms. They"
        | (?<!&)(?:Mrs?|M[sx]|Drs?|Prof|Ste|(?<!\d\s)[FP]t|Apt|Rm|Rte|Vol|Chap|Eqs?|Figs)\.\s*\0
          (?!(?:He|She|It|We|They|There|This|That|The|Then|Since|In)\b)
        # abbreviations before a number, as in "Eq. 4"
        | (?i:eqs?|secs?|refs?|thm|def|prop|lem|cor|tab|alg|vol|p\u00e1g|art|kl|o\.a|et\ al)\.\s*
          \0[(\[\d$\u20ac\u00a3]
        # abbreviations before a lower-case letter, a number or an amount, as in "approx. US$5"
        | (?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|(?i:approx|ca|ch|est|ex|max|sp))\.\s*
          \0(?:[A-Z]{1,3}\s?[$\d]|[a-z\d~$\\&\u00a3\u00a5\u00bc-\u00be\u20ac\u20b9\u221a])
        # days and times before a date or a time zone, as in "Sun. 5 May" and "5 p.m. EST"
        | (?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun|(?i:[ap]\.m))\.\s*
          \0(?:[a-z&]|\d+\s+[A-Z]|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?\s+\d
          |(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*day)?\b|UTC|GMT|[CEMPW](?:[ES]|D)?T\b
          |(?:Eastern|Central|Mountain|Pacific)\b)
        # an initial before a number, as in "U.S. No. 1"
        | [A-Z]\.\s*\0No\.\s*\d
        )
      # a citation, as in "Yan [4] found"
      | \]\s*\0\s*[a-z]
      # a fragment of one word, such as "ways." after "6!"
      | \0\s*(?:[a-z\u00df-\u00ff]|[-+=/<>]\s*\w)\w*[.!?]+(?:\s|\Z)
    )"""
).match
#: Zero-width characters, which are never part of a claim at its beginning or end.
INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
# Closing Markdown markers, footnote markers and zero-width characters belong to the preceding
# sentence.
_match_marks = re.compile(
    rf"[*_~\u00b9\u00b2\u00b3\u2070-\u2079{INVISIBLE}]+(?:\s+|\Z)"
).match
#: Find formulas, brackets and struck text, in which no sentence ends.
_find_whole = re.compile(
    r"""(?sx) \$\$.{1,2000}?\$\$ | \\\[.{0,2000}?\\\] | \\\(.{0,2000}?\\\)
    | \$(?=\S)[^$]{0,500}(?<=\S)\$(?!\d) | \([^()]*\) | \[[^\[\]]*\] | ~~.{1,2000}?~~"""
).finditer


def split_paragraph(text, language):
    """Yield the sentences of a text, each including its trailing whitespace."""
    # In sentencex 1.1, multi-byte whitespace, as in "z.\u00a0B.", causes a panic, and unpaired
    # surrogates cause an error. The sign in "x < 5" would be taken for an opening bracket, and a
    # unit of one letter, as in "3 m. It", for an initial.
    plain_text = re.sub(r"[^\S ]|[\ud800-\udfff]", " ", text)
    plain_text = re.sub(
        r"<(?=[ =\d.+-])|(?<=\d )[a-z](?=\. +[A-Z\u00c0-\u00de\"\u201c])",
        "=",
        plain_text,
    )
    ends = accumulate(map(len, segment(language, plain_text)))
    inside = {i for m in _find_whole(text) for i in range(m.start() + 1, m.end())}
    # Signs at the end belong to the last sentence, as in "Hope this helps! :)".
    n_signs = len(re.split(r"[^\W_]", text[::-1], maxsplit=1)[0])
    start = 0
    for end in ends:
        if end >= len(text) - n_signs:
            break
        if not text[end - 1].isspace():
            if match := _match_marks(text, end):
                end = match.end()
            elif text[end] in "$)]}\u00bb\u201d\u2019\"'" or text[end - 2].isspace():
                continue
        if end in inside or end <= start:
            continue
        # Reading whole sentences would take quadratic time in a text without sentence ends.
        before = text[start:end] if end - start < 200 else f"x{text[end - 200 : end]}"
        around = f"{before}\0{text[end : end + 100]}"
        # A German ordinal number does not end a sentence, as in "der 2. Weltkrieg".
        is_ordinal = language == "de" and re.search(
            r"(?i)\b(?:d(?:er|ie|as|en|em|es)|im|am|vom|zum|zur|beim|bis|seit|ab)\s+\d{1,2}\.\s*\0",
            around,
        )
        if not (is_ordinal or _is_within(around)):
            yield text[start:end]
            start = end
    yield text[start:]

"""Sentences that claim nothing are taken out of the claims, in calibration and in use."""

import numpy as np
import pytest

from skdcf import HardCF
from skdcf.apps.text import AnswerSplitter, kept_text

COURTESIES = """
Sure. Certainly! Great! You're very welcome! Got it!
Happy to help. I\u2019m happy to help! I'd be happy to help you with that! Glad I could help!
Hope this helps. I hope that answers your question! Hope it was helpful
I hope you find this useful! Hope this clarifies things.
That's a really great question! What an interesting question! Good point!
Thanks for your message! Thank you so much for your question.
I apologize for the confusion. Sorry for any inconvenience.
Let me know if you have any questions! Please let me know if you need further assistance.
Let me know if you'd like more details. Let me know if anything is unclear.
Let me know if there is anything else I can help you with. Just let me know!
Please don't hesitate to ask if you have further questions. Feel free to ask!
Feel free to reach out if you have any other questions or concerns.
If you have any other questions, feel free to ask! If you'd like to know more, just ask!
Is there anything else I can help you with today? Can I help you with anything else?
Sure, I can help with that. Apologies for the confusion. It's my pleasure!
Let me know if there's anything else I can help with. Is there anything else you'd like to know?
**Hope this helps!** Hope these tips help! *I hope this clears things up.*
Let me know if this helps. Feel free to ask me anything. I wish you all the best!
I hope this helps! \U0001f60a
Hope this helps :)
Would you like me to explain? Do you have any other questions? Does that make sense?
Good luck! Have a great day! Take care! Enjoy! Happy coding! Let me explain. Let's dive in!
Here is what I found:
Here's a short summary of the passage:
Here are some tips:
"""
HEADINGS = """
## Side effects:
## Step 3:
## Introduction
**Summary**
Solution:
**Side effects**:
**Step 2:**
**Summary:**
Conclusion:
Pros:
**Cons:**
## Pros
## Symptoms
**Ingredients**
*Cons:*
### **Costs:**
## 2. History
**1. Pros:**
**Here is what I found:**
"""
# Such a line may be the whole answer to the question.
CLAIMS = """
Sure, aspirin is safe.
Yes.
Can help.
42. Hope this helps!
**3. Hope this helps!**
**42. Summary:**
Sure! \u221e
Sure! \u2705
Okay. `**`
Answer: \U0001f600
Sure! \U0001f621
Yes, we can help with that.
Absolutely.
Apologize for the delay.
__code__
**Answer:** \u274c
It is safe. \u274c
Ask.
Aspirin helps here:
Here is what kills bacteria: heat.
Here is the summary: aspirin is safe.
The cover includes:
Your policy:
## Aspirin is a painkiller
**Aspirin is safe**
**Aspirin**
**42:**
**No:**
**(B)**
**Option B:**
**Not covered:**
**Unsafe:**
**Vaccines kill:**
**Aspirin works:**
## Taxes rise:
**\u2705:**
Step 3
Introduction
**Solution**
**Case 2**
### Yes
## Buenos Aires
I hope this helps your heart heal.
Feel free to take aspirin.
Let me know if you have diabetes.
I found nothing.
"""


def split(answer, **settings):
    return AnswerSplitter(**settings).split({"answer": answer})


def test_what_claims_nothing_is_on_the_list():
    assert split(COURTESIES).claims == ()
    assert split(f"{HEADINGS}Aspirin helps.").claims == ("Aspirin helps.",)


@pytest.mark.parametrize(
    "answer",
    [
        "**Location**\nSure.",
        "It is **Location**\nYes.",
        "# Location",
        "It is one of three.\n\n## Location",
        "**Location**\n\nIt explains the price.",
        "- **Location**\n- **Climate**",
        "- **Location**\n- **Strengths**\n- Maps",
        "Location\n===\nIt explains the price.",
    ],
)
def test_a_marked_word_may_be_the_answer(answer):
    assert "Location" in "".join(split(answer).claims)


def test_what_may_be_false_is_a_claim():
    assert {*split(CLAIMS).metadata["layout"][1::2]} == {None}


ANSWER = (
    "Sure. Here is what I found:\n"
    "Aspirin thins the blood. It upsets the stomach.\nI hope this helps!"
)


@pytest.mark.parametrize(
    ("mask", "start", "end"), [("11", 0, None), ("01", 6, None), ("10", 0, -42)]
)
def test_text_has_them_only_next_to_a_claim_that_is_kept(mask, start, end):
    text = ANSWER[start:end]
    if mask == "01":
        text = text.replace("Aspirin thins the blood. ", "")
    assert kept_text(split(ANSWER), [sign == "1" for sign in mask]) == text


def test_the_language_is_recorded():
    for language, n in (("en", 3), ("de", 2)):
        graph = split("Am 9. Mai. Ja.", language=language)
        assert (graph.provenance["language"], graph.n_claims) == (language, n)


def test_the_list_can_be_replaced_and_is_compared(tmp_path):
    """Whoever splits by another list makes other problems, and filters refuse them."""
    own = tmp_path / "own.txt"
    own.write_text("# mine\nAspirin .*\n")
    graph, other = (
        made.replace(features=np.full((made.n_claims, 1), 0.1))
        for made in (split(ANSWER), split(ANSWER, no_claim=str(own)))
    )
    assert "Sure." in other.claims and graph.claims[0] not in other.claims
    cf = HardCF(0, alpha=0.4).fit([graph] * 2, [[0, 0]] * 2, groups=False)
    with pytest.raises(ValueError, match="no_claim"):
        cf.predict([other])


def test_a_line_that_is_no_pattern_is_named(tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("\n(\n")
    with pytest.raises(ValueError, match="line 2: '\\('"):
        split(ANSWER, no_claim=str(own))

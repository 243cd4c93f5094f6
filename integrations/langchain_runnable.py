"""LangChain: a runnable that filters the answers at the end of a chain."""

import offline
from desk import JUDGED, TEST, answer_of, new_filter, to_problem
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

cf = new_filter().fit(JUDGED.graphs, JUDGED.labels)


def show(turn):
    """Return the filtered text, or a default sentence if no claim is kept."""
    problem = to_problem(turn["question"], turn["passages"], turn["answer"])
    return cf.filter([problem], output="text")[0] or "I do not know."


prompt = ChatPromptTemplate.from_template("Answer by {passages}: {question}")
model = FakeListChatModel(responses=[answer_of(graph) for graph in TEST.graphs])
answer = prompt | model | StrOutputParser()
chain = RunnablePassthrough.assign(answer=answer) | RunnableLambda(show)

# The fake model returns its responses in order, so the questions are asked one by one.
turns = [{"question": g.problem, "passages": list(g.context)} for g in TEST.graphs]
shown = [chain.invoke(turn) for turn in turns]

texts = cf.filter(TEST.graphs, output="text")
assert shown == [text or "I do not know." for text in texts]
print("asked:", turns[0]["question"], "\nwritten:", answer_of(TEST.graphs[0]))
print("shown:", shown[0])
offline.finish("langchain-core")

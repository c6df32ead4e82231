"""A LangGraph graph whose memories outlive the process: what a user said before is found again by its meaning.

python examples/langgraph_store.py FOLDER USER MESSAGE
"""

import sys
from typing import TypedDict
from uuid import uuid4

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

import memoranda
from memoranda.integrations.langgraph import MemorandaStore

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, user, message = sys.argv[1:]


class Context(TypedDict):
    user: str


class State(TypedDict, total=False):
    message: str
    reply: str


def answer(state: State, runtime: Runtime[Context]) -> State:
    """Answers with what is remembered, and remembers the message."""
    namespace = ("memories", runtime.context["user"])
    remembered = runtime.store.search(namespace, query=state["message"], limit=3)
    runtime.store.put(namespace, str(uuid4()), {"text": state["message"]})
    if not remembered:
        return {"reply": "I know nothing of that yet."}
    return {"reply": "\n".join(f"{item.score:.2f} {item.value['text']}" for item in remembered)}


with memoranda.open(folder) as product:
    builder = StateGraph(State, context_schema=Context)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    graph = builder.compile(store=MemorandaStore(product, index={"fields": ["text"]}))
    print(graph.invoke({"message": message}, context={"user": user})["reply"])

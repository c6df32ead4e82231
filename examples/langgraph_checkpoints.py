"""A LangGraph graph whose state outlives the process: each run goes on with the thread where the last one ended.

python examples/langgraph_checkpoints.py FOLDER THREAD MESSAGE
"""

import operator
import sys
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph

import memoranda
from memoranda.integrations.langgraph import MemorandaSaver

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, thread, message = sys.argv[1:]


class State(TypedDict):
    messages: Annotated[list[str], operator.add]


with memoranda.open(folder) as product:
    builder = StateGraph(State)
    builder.add_node("listen", lambda state: {})
    builder.add_edge(START, "listen")
    builder.add_edge("listen", END)
    graph = builder.compile(checkpointer=MemorandaSaver(product))
    state = graph.invoke({"messages": [message]}, {"configurable": {"thread_id": thread}})
    for number, said in enumerate(state["messages"], 1):
        print(f"{number}. {said}")

"""A vector store is asked with LangChain's ChatOpenAI, streamed, and the conversation goes on.

python examples/langchain_chat.py STORE QUESTION
"""

import os
import sys

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

if len(sys.argv) != 3:
    sys.exit(__doc__)
store, question = sys.argv[1:]
url = os.environ.get("MEMORANDA_URL", "http://127.0.0.1:8377")
chat = ChatOpenAI(
    model=os.environ.get("MEMORANDA_MODEL", "extractive"),
    base_url=f"{url}/v1",
    api_key="none",
    use_responses_api=True,
    use_previous_response_id=True,
).bind_tools([{"type": "file_search", "vector_store_ids": [store]}])

messages = [HumanMessage(question)]
answer = None
for chunk in chat.stream(messages):
    print(chunk.text, end="", flush=True)
    answer = chunk if answer is None else answer + chunk
print()
for block in answer.content_blocks:
    for note in block.get("annotations", []):
        print(note.get("title") or note)

messages += [answer, HumanMessage("And in one sentence?")]
print(chat.invoke(messages).text)

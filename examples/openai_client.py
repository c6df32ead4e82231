"""A file is uploaded and asked about with the `openai` package, streamed, and the conversation goes on.

python examples/openai_client.py FILE QUESTION
"""

import os
import sys

from openai import OpenAI

if len(sys.argv) != 3:
    sys.exit(__doc__)
path, question = sys.argv[1:]
url = os.environ.get("MEMORANDA_URL", "http://127.0.0.1:8377")
model = os.environ.get("MEMORANDA_MODEL", "extractive")
client = OpenAI(base_url=f"{url}/v1", api_key="none")

store = client.vector_stores.create(name="manuals")
with open(path, "rb") as file:
    client.vector_stores.files.upload_and_poll(vector_store_id=store.id, file=file)
print("store:", store.id)

tools = [{"type": "file_search", "vector_store_ids": [store.id]}]
with client.responses.stream(model=model, input=question, tools=tools) as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            print(event.delta, end="", flush=True)
    answer = stream.get_final_response()
print()
for note in answer.output[-1].content[0].annotations:
    print(f"{note.text} {note.filename}")

again = client.responses.create(
    model=model, input="And in one sentence?", previous_response_id=answer.id, tools=tools
)
print(again.output_text)

"""Claude with its memory tool, whose files are memories: a search finds them in any other program.

ANTHROPIC_API_KEY=... python examples/anthropic_memory.py FOLDER MESSAGE QUESTION
"""

import sys

from anthropic import Anthropic

import memoranda
from memoranda.integrations.anthropic import MemorandaMemoryTool

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, message, question = sys.argv[1:]

with memoranda.open(folder) as product:
    runner = Anthropic().beta.messages.tool_runner(
        model="claude-sonnet-5-5",
        max_tokens=2048,
        betas=["context-management-2025-06-27"],
        tools=[MemorandaMemoryTool(product)],
        messages=[{"role": "user", "content": message}],
    )
    answer = runner.until_done()
    print("".join(block.text for block in answer.content if block.type == "text"))

    for hit in product.memories.search(question, limit=1).results:
        path, _, text = hit.memory.content.partition("\n\n")
        print(f"{path}: {text}")

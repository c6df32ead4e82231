"""A bot in a group chat that remembers: every line is kept, and a line that begins with @bot is answered from it.

printf 'Ana: I live in Porto now.\nBen: @bot where does Ana live?\n' | python examples/group_chat.py FOLDER
"""

import sys

import memoranda

with memoranda.open(sys.argv[1], facts={"capture_rules": True}) as r:
    for line in sys.stdin:
        speaker, _, text = line.strip().partition(": ")
        said = r.observe(
            [{"content": text, "speaker": speaker, "user_id": speaker.lower()}], channel_id="kitchen"
        )
        if text.startswith("@bot "):
            question = text.removeprefix("@bot ")
            # what a language model would be told before it answers; the question itself is in there once
            found = r.context(question, channel_id="kitchen", budget=400, exclude=[said[0].message.id])
            print(found.text)

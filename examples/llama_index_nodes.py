"""Nodes in a LlamaIndex index over a folder: no server, no other model, and there again next time.

python examples/llama_index_nodes.py FOLDER QUESTION
"""

import sys

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

import memoranda
from memoranda.integrations.llama_index import MemorandaEmbedding, MemorandaVectorStore

if len(sys.argv) != 3:
    sys.exit(__doc__)
folder, question = sys.argv[1:]
NODES = [
    TextNode(id_="kettle", text="The kettle is descaled with vinegar once a month."),
    TextNode(id_="fence", text="The fence was painted red in May."),
    TextNode(id_="bees", text="Bees live behind the shed."),
]

with memoranda.open(folder) as product:
    store = MemorandaVectorStore(product)
    index = VectorStoreIndex.from_vector_store(store, embed_model=MemorandaEmbedding(product))
    index.insert_nodes(NODES)
    for found in index.as_retriever(similarity_top_k=2).retrieve(question):
        print(f"{found.score:.2f} {found.text} ({found.id_})")

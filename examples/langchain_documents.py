"""Documents in a LangChain vector store that is a folder: no server, no other model, and there again next time.

python examples/langchain_documents.py FOLDER QUESTION
"""

import sys

from langchain_core.documents import Document

import memoranda
from memoranda.integrations.langchain import MemorandaVectorStore

if len(sys.argv) != 3:
    sys.exit(__doc__)
folder, question = sys.argv[1:]
DOCUMENTS = [
    Document("The kettle is descaled with vinegar once a month.", id="kettle"),
    Document("The fence was painted red in May.", id="fence"),
    Document("Bees live behind the shed.", id="bees"),
]

with memoranda.open(folder) as product:
    store = MemorandaVectorStore(product)
    store.add_documents(DOCUMENTS)
    for document, score in store.similarity_search_with_relevance_scores(question, k=2):
        print(f"{score:.2f} {document.page_content} ({document.id})")

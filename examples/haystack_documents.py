"""Documents in a Haystack pipeline over a folder: no server, no other model, and there again next time.

python examples/haystack_documents.py FOLDER QUESTION
"""

import sys

from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DuplicatePolicy

from memoranda.integrations.haystack import MemorandaDocumentStore, MemorandaRetriever

if len(sys.argv) != 3:
    sys.exit(__doc__)
folder, question = sys.argv[1:]
DOCUMENTS = [
    Document(id="kettle", content="The kettle is descaled with vinegar once a month."),
    Document(id="fence", content="The fence was painted red in May."),
    Document(id="bees", content="Bees live behind the shed."),
]

store = MemorandaDocumentStore(folder)
indexing = Pipeline()
indexing.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.OVERWRITE))
indexing.run({"writer": {"documents": DOCUMENTS}})

asking = Pipeline()
asking.add_component("retriever", MemorandaRetriever(store, top_k=2))
for document in asking.run({"retriever": {"query": question}})["retriever"]["documents"]:
    print(f"{document.score:.2f} {document.content} ({document.id})")
store.close()

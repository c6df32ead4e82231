"""The features of the library for callers without an event loop; features.pyi has their signatures."""

from __future__ import annotations

from memoranda.app.archive.archives import Archives
from memoranda.app.backfills import Backfills
from memoranda.app.blocking.calls import blocking_feature
from memoranda.app.costs import Costs
from memoranda.app.evals.evaluation import Evaluations
from memoranda.contexts.contexts import Contexts
from memoranda.document_qa.asking import UploadAsk
from memoranda.document_qa.documents import Documents
from memoranda.facts.facts import Facts
from memoranda.knowledge import Admin, Files, Knowledge, Stores, Uploads
from memoranda.memories.memories import Memories
from memoranda.memory_stores.memories import StoreMemories
from memoranda.memory_stores.stores import MemoryStores
from memoranda.memory_stores.versions import MemoryVersions
from memoranda.responses.conversations import Conversations
from memoranda.responses.profiles import Agents
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.switches import Switches

BlockingAdmin = blocking_feature(Admin)
BlockingAgents = blocking_feature(Agents)
BlockingArchives = blocking_feature(Archives)
BlockingBackfills = blocking_feature(Backfills)
BlockingContexts = blocking_feature(Contexts)
BlockingConversations = blocking_feature(Conversations)
BlockingCosts = blocking_feature(Costs)
BlockingDocuments = blocking_feature(Documents)
BlockingEvaluations = blocking_feature(Evaluations)
BlockingFacts = blocking_feature(Facts)
BlockingFiles = blocking_feature(Files)
BlockingKnowledge = blocking_feature(Knowledge, parts=("files", "uploads", "stores", "admin"))
BlockingMemories = blocking_feature(Memories)
BlockingMemoryStores = blocking_feature(MemoryStores, returning=("memories", "versions"))
BlockingMemoryVersions = blocking_feature(MemoryVersions)
BlockingSessions = blocking_feature(Sessions)
BlockingStoreMemories = blocking_feature(StoreMemories)
BlockingStores = blocking_feature(Stores)
BlockingSwitches = blocking_feature(Switches)
BlockingUploadAsk = blocking_feature(UploadAsk, parts=("documents",), returning=("acting_for",))
BlockingUploads = blocking_feature(Uploads)

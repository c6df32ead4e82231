"""The read path: candidates, fusion, reranking and query expansion."""

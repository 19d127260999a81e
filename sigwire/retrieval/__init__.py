"""Retrieval: texts to vectors, and the nearest texts.

model        EmbeddingModel: a provider's model of embeddings
embedder     Embedder: texts to vectors, in batches                knn      KNN: the nearest examples of a training set
embeddings   Embeddings: search in a corpus in memory, or in an index of another library
"""

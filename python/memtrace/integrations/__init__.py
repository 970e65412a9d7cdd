"""Callbacks for trainers: Hugging Face Transformers, Lightning and Accelerate."""

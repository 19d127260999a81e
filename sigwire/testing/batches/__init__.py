"""Batch APIs of the fake provider.

desk    ``BatchPlan``, and the batches of one provider: created, run at their time, listed, cancelled
anthropic, gemini, openai    the endpoints: paths, and the JSON of each answer
"""

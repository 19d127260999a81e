"""The cards of programs: ``predictors`` (one predictor), ``tree`` (a program and its parts)."""

"""The rules of optimizers, one file each.

labeled_few_shot    LabeledFewShot: rows as demos              bootstrap_few_shot  successful runs of a teacher as demos
random_search       the best of many sets of demos             optuna_search       sets of demos chosen by TPE
knn                 KNNFewShot: the nearest demos of a call    infer_rules         rules that the data teaches
copro               COPRO: instructions from tried ones        miprov2             instructions and demos together
gepa                GEPA: reflection and a Pareto front        simba               SIMBA: rules and demos of hard rows
calibrate           Calibrate: numbers of decisions
ensemble            Ensemble: one answer of several programs   better_together     optimizers one after another
"""

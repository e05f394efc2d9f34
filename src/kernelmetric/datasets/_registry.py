"""The table of data sets: what each one is, its checksums, and where it can come from.

Data, no logic. Every set is one :class:`Entry`. ``sha256`` is the checksum of the *file* in the
user's folder; ``content`` is the checksum of the *values* (see
:func:`kernelmetric.datasets.content_digest`), which is what a download can be held to, since
another server stores the same table as other bytes. ``tests/test_datasets.py`` recomputes both
from the real files.
"""

from kernelmetric.datasets._entry import Entry, OpenML, codes

_DIGITS = tuple("0123456789")
_LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# fmt: off
_LETTER_COUNTS = (
    789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792,
    783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734,
)
# fmt: on
_YEAST = ("CYT", "ERL", "EXC", "ME1", "ME2", "ME3", "MIT", "NUC", "POX", "VAC")
_BREAST_FEATURES = (
    "clump_thickness cell_size_uniformity cell_shape_uniformity marginal_adhesion "
    "epithelial_cell_size bare_nuclei bland_chromatin normal_nucleoli mitoses"
)

_TABLE = (
    Entry(
        name="balance",
        title="UCI balance scale",
        n_features=4,
        counts=(49, 288, 288),
        target_names=("B", "L", "R"),
        file="balance.csv.gz",
        sha256="a4107d4e46fe2fa3c38e027ca88a7b453c5f5c902721855774b52bd9cb224281",
        features="left_weight left_distance right_weight right_distance",
        openml=OpenML(
            11,
            codes("B", "L", "R"),
            "51f0b5ab24e042858c14d1b8645f0939f87b73297542d39e3089f5bf628205b0",
        ),
        note="A full 5^4 grid: most distances tie.",
        aliases=("balance_scale",),
    ),
    Entry(
        name="breast",
        title="UCI breast cancer Wisconsin (original), complete rows",
        n_features=9,
        counts=(444, 239),
        target_names=("benign", "malignant"),
        file="breast.csv.gz",
        sha256="6197c3c99c079de8d0d8ef9fb45bf11aea4e6cc43fffa9fbd0bc41770b4edda3",
        features=_BREAST_FEATURES,
        openml=OpenML(
            15,
            codes("benign", "malignant"),
            "00e236a39a07f70bd41c430796fe79323f9cbe9cc3e746518da4e64994800373",
            drop_missing=True,
        ),
        note="The 16 rows with a missing bare_nuclei are dropped; 234 feature rows repeat. "
        "Not scikit-learn's load_breast_cancer, which is another set (569 x 30).",
        aliases=("breast683",),
    ),
    Entry(
        name="breast699",
        title="UCI breast cancer Wisconsin (original), all rows",
        n_features=9,
        counts=(458, 241),
        target_names=("benign", "malignant"),
        file="breast699.csv.gz",
        sha256="9a94b99a6fad420ed9433808e277733aa2803becfe9c33d55e95c5d4eba014f2",
        features=_BREAST_FEATURES,
        n_missing=16,
        openml=OpenML(
            15,
            codes("benign", "malignant"),
            "111e29fc8836aee8e231e2463d2d73280957234eedc2b8c638c6fa80925547ec",
        ),
        aliases=("breast_w",),
    ),
    Entry(
        name="glass",
        title="UCI glass identification",
        n_features=9,
        counts=(70, 76, 17, 13, 9, 29),
        target_names=(
            "building_float",
            "building_non_float",
            "vehicle_float",
            "containers",
            "tableware",
            "headlamps",
        ),
        file="glass.csv.gz",
        sha256="bf517068679a43edb1902168d7944149c46b9da1c5ce89db93f8f7268a6fc232",
        features="RI Na Mg Al Si K Ca Ba Fe",
        openml=OpenML(
            41,
            codes(
                "build wind float",
                "build wind non-float",
                "vehic wind float",
                "containers",
                "tableware",
                "headlamps",
            ),
            "6d3491d1035e22bdf44c3c22ef4533b06fc97f6716ff0460b26b8e2dfc9b702f",
        ),
        note="UCI types 1, 2, 3, 5, 6, 7 are the codes 0..5.",
    ),
    Entry(
        name="ionosphere",
        title="UCI ionosphere",
        n_features=34,
        counts=(126, 225),
        target_names=("bad", "good"),
        file="ionosphere.csv.gz",
        sha256="d1a073c6520bfe738b1b763beec23879802401be8647b2c102b67d15e1aafffc",
        openml=OpenML(
            59, codes("b", "g"), "fc38eced0aed48e38b729c4b2adfee1aa63caa982d00d63756a54507a2d78f0d"
        ),
        note="Column f2 is constant.",
        aliases=("ionos",),
    ),
    Entry(
        name="iris",
        title="UCI iris",
        n_features=4,
        counts=(50, 50, 50),
        target_names=("setosa", "versicolor", "virginica"),
        file="iris.csv.gz",
        sha256="53fa1ffe385dbf207de26ce4f6173b2023f1c11c8b1e6d073fea65cd99c8faf8",
        features="sepal_length sepal_width petal_length petal_width",
        bundled="load_iris",
        bundled_note="rows 34 and 37 (from 0) carry the corrected values, "
        "the UCI file the well-known wrong ones",
    ),
    Entry(
        name="musk2",
        title="UCI musk (version 2)",
        n_features=166,
        counts=(5581, 1017),
        target_names=("non-musk", "musk"),
        file="musk2.csv.gz",
        sha256="de5b5f65503206ad028504fd0693d3e94b7605c7b233f318d0de2c091019a2e4",
        openml=OpenML(
            1116,
            codes("0", "1"),
            "c25457febd7ae43eab97e5bcc1206f93cebbee85908f8151a2091bc8ad11c7d2",
            columns=r"f\d+",
        ),
        note="One row per conformation; the number of its molecule is left out.",
        aliases=("musk",),
    ),
    Entry(
        name="pima",
        title="UCI Pima Indians diabetes",
        n_features=8,
        counts=(500, 268),
        target_names=("negative", "positive"),
        file="pima.csv.gz",
        sha256="63b31b81ed27d5294ff652700fcaa351e48b328c3647bc90a06d6f7ee6e1851c",
        features="pregnancies glucose blood_pressure skin_thickness insulin bmi pedigree age",
        openml=OpenML(
            37,
            codes("tested_negative", "tested_positive"),
            "aa904d358e8964f92c5814e6bcbed3c32590455d3963df7ed351cda7a59fd661",
        ),
        note="Zeros in glucose, blood_pressure, skin_thickness, insulin and bmi are hidden missing "
        "values, left as they are.",
        aliases=("diabetes",),
    ),
    Entry(
        name="satellite",
        title="UCI Statlog Landsat satellite",
        n_features=36,
        counts=(1533, 703, 1358, 626, 707, 1508),
        target_names=(
            "red soil",
            "cotton crop",
            "grey soil",
            "damp grey soil",
            "vegetation stubble",
            "very damp grey soil",
        ),
        file="satellite.csv.gz",
        sha256="9f01c113e8fad5e2e56a443fc8e331eccbc46b41c34beb8116bca6f2acbfe9b2",
        # OpenML's better-known "satimage" (182) lacks five of the rows.
        openml=OpenML(
            294,
            codes("1", "2", "3", "4", "5", "7"),
            "f99bda681d79f51c87738c056d7697d81f7833a6b79d8f7b11b62710f3ef5f74",
        ),
        note="UCI classes 1, 2, 3, 4, 5, 7 are the codes 0..5; in the file the first 4435 rows are "
        "the training part.",
        aliases=("satimage", "landsat"),
    ),
    Entry(
        name="yeast",
        title="UCI yeast",
        n_features=8,
        counts=(463, 5, 35, 44, 51, 163, 244, 429, 20, 30),
        target_names=_YEAST,
        file="yeast.csv.gz",
        sha256="ea35464576d60c3d407cd90d2495c1c5845cfdf6bb9039bf78fd053f44e7be54",
        features="mcg gvh alm mit erl pox vac nuc",
        openml=OpenML(
            181, codes(*_YEAST), "8515b324f578415fff82e8777db82ea7012e55d481f539902be504d0cc0e5568"
        ),
    ),
    Entry(
        name="sonar",
        title="UCI sonar, mines vs. rocks",
        n_features=60,
        counts=(111, 97),
        target_names=("mine", "rock"),
        file="sonar.csv.gz",
        sha256="a1a292c9c15b1191c934886c263311573f67a0bd27211219e52ba05d57f04231",
        openml=OpenML(
            40,
            codes("Mine", "Rock"),
            "e44f7b08ecce4c85f30954d9a3d2b9d84817247e3a389d52973aa2a688e8a3ad",
        ),
    ),
    Entry(
        name="wine",
        title="UCI wine",
        n_features=13,
        counts=(59, 71, 48),
        target_names=("class_0", "class_1", "class_2"),
        file="wine.csv.gz",
        sha256="cc6c956d69808e5149204388caa766d5df44c0b160fe028ef80a523c5238fc49",
        features="alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids "
        "nonflavanoid_phenols proanthocyanins color_intensity hue od280_od315 proline",
        bundled="load_wine",
        bundled_note="the same values in the same order as the UCI file",
        note="Unscaled: proline dominates Euclidean distances.",
    ),
    Entry(
        name="soybean_small",
        title="UCI soybean (small)",
        n_features=35,
        counts=(10, 10, 10, 17),
        target_names=("D1", "D2", "D3", "D4"),
        file="soybean_small.csv.gz",
        sha256="3eb9e7e93c96bb9a98be78d64e1cdc35a46a5a1fa02fac42bac5def3ac9a1dc8",
        note="14 of the 35 columns are constant.",
        aliases=("soybean",),
    ),
    Entry(
        name="usps",
        title="USPS handwritten digits, 16 x 16 pixels in [-1, 1]",
        n_features=256,
        counts=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        target_names=_DIGITS,
        file="usps.npz",
        sha256="64dca199db6d4f2918a572fe140fe4acd545e1b294aacae9d80b4cb02d64d894",
        dtype="float32",
        # OpenML writes digit d as class d + 1.
        openml=OpenML(
            41082,
            codes(*map(str, range(1, 11))),
            "008773312c6f8640fdfd1ff902083daea64f323d9ef691ac3b78f263ca64a25a",
            decimals=3,
        ),
        note="In the file the first 7291 rows are the training part.",
    ),
    Entry(
        name="m_usps",
        title="USPS of the semi-supervised learning benchmark: digits 2 and 5 vs. the rest",
        n_features=241,
        counts=(1200, 300),
        target_names=("other digits", "2 or 5"),
        file="usps_ssl.npz",
        sha256="09386afa207186566ae1a5b971473f5b8cc83dc71983f325d3fbbfe6d817ac29",
        target_codes=(-1, 1),
        extras=("labeled10", "labeled100"),
        note="Labels -1 / +1 of the benchmark are the codes 0 / 1. labeled10 (12 x 10) and "
        "labeled100 (12 x 100) are its twelve published splits: the indices, from 0, of the "
        "labelled rows.",
        aliases=("usps_ssl", "musps"),
    ),
    Entry(
        name="colon",
        title="Colon tumour gene expression (Alon et al. 1999)",
        n_features=2000,
        counts=(22, 40),
        target_names=("normal", "tumour"),
        file="colon.npz",
        sha256="1520089eef04aae9f79e493df3f7746a5ab44c5ee3c3426b658b497ccd4d7f88",
        note="Raw intensities, not log-transformed.",
    ),
    Entry(
        name="lymphoma",
        title="Lymphoma gene expression (Alizadeh et al. 2000)",
        n_features=4026,
        counts=(46, 10, 9, 11, 6, 6, 4, 2, 2),
        target_names=("DLBCL", "class_1", "FL", "CLL", *(f"class_{c}" for c in range(4, 9))),
        file="lymphoma.npz",
        sha256="6f0b7478dd327680a51493d6a2cdab94bc93587b8be25939770e0d8853261c6f",
        n_missing=19667,
        dtype="float32",
        extras=("target2",),
        note="Log ratios. target2 is 1 for the 62 patients with DLBCL, FL or CLL and 0 for the 34 "
        "others: normal cells, cell lines, and 4 samples of the 46 in class 0.",
    ),
    Entry(
        name="mnist",
        title="MNIST handwritten digits, 28 x 28 pixels in 0..255",
        n_features=784,
        counts=(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        target_names=_DIGITS,
        file="mnist.npz",
        sha256="e6c9537e3378338a67ec318e64e60dbb2dbc65f191e8e7e8ee2ba607016e3512",
        dtype="uint8",
        openml=OpenML(
            554,
            codes(*_DIGITS),
            "1cddd8b1d116e4876d70e63e052cf14ba40de036d45ede5793a3710b9e7c03d0",
        ),
        note="In the file the first 60000 rows are the training part.",
        aliases=("mnist_784",),
    ),
    Entry(
        name="letter",
        title="UCI letter recognition",
        n_features=16,
        counts=_LETTER_COUNTS,
        target_names=_LETTERS,
        file="letter.csv.gz",
        sha256="f10c57c96972fee685690aec54d4d9b9d9e37d2e497adb87f0d160967a664895",
        features="x_box y_box width high onpix x_bar y_bar x2bar y2bar xybar x2ybr xy2br x_ege "
        "xegvy y_ege yegvx",
        openml=OpenML(
            6, codes(*_LETTERS), "49e048fdd73a328f6bb93cdddc43d5c9e5ec92a315af40fe36a8acbbe8ed3497"
        ),
        note="In the file the first 16000 rows are the training part.",
    ),
    Entry(
        name="shuttle",
        title="UCI Statlog shuttle",
        n_features=9,
        counts=(45586, 50, 171, 8903, 3267, 10, 13),
        target_names=(
            "Rad Flow",
            "Fpv Close",
            "Fpv Open",
            "High",
            "Bypass",
            "Bpv Close",
            "Bpv Open",
        ),
        file="shuttle.csv.gz",
        sha256="2cf44101eac9d6c726c654b4341b40eb877a621a380be48dfa605f8808b39241",
        openml=OpenML(
            40685,
            codes(*"1234567"),
            "cc833b274e2ec1d8129f2a6599fdafbad44a6e340b96974cbbfda037f35e5464",
        ),
        note="In the file the first 43500 rows are the training part.",
    ),
    Entry(
        name="covtype",
        title="UCI forest cover type",
        n_features=54,
        counts=(211840, 283301, 35754, 2747, 9493, 17367, 20510),
        target_names=(
            "Spruce/Fir",
            "Lodgepole Pine",
            "Ponderosa Pine",
            "Cottonwood/Willow",
            "Aspen",
            "Douglas-fir",
            "Krummholz",
        ),
        file="covtype.npz",
        sha256="74c5dfaad8764e5d2159f7e20c35c6f5366c7877b85c75d2e2b79e08eb643900",
        dtype="int16",
        openml=OpenML(
            1596,
            codes(*"1234567"),
            "b509cf5fa6e35faf8c946ed1359f1724f818e6b575a6bcf9c84c862e927ddf74",
        ),
        note="10 numeric and 44 binary columns.",
        aliases=("covertype",),
    ),
    Entry(
        name="digits",
        title="UCI optical digits (test part), 8 x 8 pixels in 0..16",
        n_features=64,
        counts=(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
        target_names=_DIGITS,
        bundled="load_digits",
        bundled_note="scikit-learn's own copy",
    ),
)

REGISTRY: dict[str, Entry] = {entry.name: entry for entry in _TABLE}
ALIASES: dict[str, str] = {alias: entry.name for entry in _TABLE for alias in entry.aliases}

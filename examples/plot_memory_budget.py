"""
More points than memory
=======================

Ask before the work starts how much memory a fit takes, then choose. A file on disk can be larger
than the memory: its rows pass through in blocks.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from kernelmetric import KPCA, LMNN, NCA, Kernelized, Nystroem, memory_budget

# %%
# What a fit takes at its peak, besides the data, for 20 features.
sizes = np.array([1_000, 3_000, 10_000, 30_000, 100_000])
estimators = {
    "Kernelized(LMNN(), space=KPCA())": Kernelized(LMNN(), space=KPCA()),
    "Kernelized(LMNN())": Kernelized(LMNN()),
    "Kernelized(NCA(2), space=Nystroem(200))": Kernelized(NCA(2), space=Nystroem(200)),
    "NCA(2)": NCA(2),
}
figure, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
with memory_budget("2GB"):
    for name, estimator in estimators.items():
        megabytes = [estimator.estimate_memory(n, 20) / 1e6 for n in sizes]
        ax.loglog(sizes, megabytes, "o-", label=name)
ax.axhline(16_000, color="gray", linestyle="--")
ax.text(sizes[0], 18_000, "a laptop with 16 GB", color="gray")
ax.set(xlabel="points", ylabel="estimated peak, MB", ylim=(1, 5e6))
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)

# %%
# Points in a file, as float32. The fit and the transform read blocks of rows from it.
folder = Path(tempfile.mkdtemp())
points = np.memmap(folder / "points.f32", np.float32, "w+", shape=(20_000, 20))
points[:] = np.random.default_rng(0).standard_normal(points.shape)
labels = (np.linalg.norm(points[:, :3], axis=1) > 1.5).astype(int)
with memory_budget("50MB"):
    space = Nystroem(100, kernel="rbf", random_state=0).fit(points)
    print(space.transform(points[:5]).shape, space.transform(points[:5]).dtype)

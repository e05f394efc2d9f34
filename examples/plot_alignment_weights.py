"""
Which widths do the labels ask for?
===================================

Alignment offers 21 widths of the RBF, from very narrow to very wide, and a ridge. The labels choose
a weighted sum of them, without cross-validation.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from kernelmetric import RBF, Delta, KernelAlignment
from kernelmetric.kernels import rbf_widths
from kernelmetric.report import plot_gram, plot_kernel_weights

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
kernel = KernelAlignment([*rbf_widths(), Delta()], centered=True).bind(X, y)
print(f"alignment {kernel.alignment_:.3f}, best single width {kernel.base_alignments_.max():.3f}")

# %%
# Most weights are zero: wide kernels say the same thing, and one of them is enough.
plot_kernel_weights(kernel)

# %%
# Gram matrices with the points ordered by class. Red is alike, blue is not.
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
plot_gram(RBF().bind(X), X[::3], y[::3], centered=True, ax=axes[0])
plot_gram(kernel, X[::3], y[::3], centered=True, ax=axes[1])
axes[0].set_title("RBF of median width")
axes[1].set_title("aligned sum")

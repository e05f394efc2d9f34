"""
A kernel of your own, for words
===============================

Points need not be vectors. Here they are words of four languages, and the kernel counts the groups
of letters that two words share. The same steps serve names, molecules and time series: see
:doc:`Molecules, series, strings, sets and graphs </guide/objects>`.
"""

from collections import Counter

import numpy as np
from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import LFDA, Kernelized
from kernelmetric.inspection import part_shares
from kernelmetric.kernels import ObjectKernel

WORDS = {
    "English": "the water night through thought where which friend earth bread house when white "
    "without something tomorrow weather brother light strength evening winter should world",
    "German": "wasser nacht durch gedacht welche freund erde brot haus wenn weiss ohne etwas "
    "morgen wetter bruder licht schatten abend winter sollte welt zwischen schule",
    "Italian": "acqua notte attraverso pensiero quale amico terra pane casa quando bianco senza "
    "qualcosa domani tempo fratello luce ombra sera inverno mondo scuola giorno strada",
    "Finnish": "vesi ystävä maa leipä talo kun valkoinen ilman jotakin huomenna sää veli valo "
    "varjo ilta talvi pitäisi maailma koulu päivä katu kaupunki joki metsä",
}
words = [word for line in WORDS.values() for word in line.split()]
language = np.array([name for name, line in WORDS.items() for _ in line.split()])


# %%
# The kernel: groups of one to three letters, with marks for the beginning and the end. A word is
# then a list of counts, and two words are as alike as the cosine of their counts. ``NGrams`` of the
# library does so too, and faster.
class Groups(ObjectKernel):
    """Cosine of the counts of groups of letters."""

    normalize = True

    def compare(self, a, b):
        """How many groups two words share."""
        a, b = (Counter(self.groups(f"<{word}>")) for word in (a, b))
        return sum(times * b[group] for group, times in a.items())

    @staticmethod
    def groups(word):
        """All groups of one to three letters."""
        return [word[i : i + k] for k in (1, 2, 3) for i in range(len(word) - k + 1)]

    def parts(self, word):
        """The letters, and the word without each: for ``part_shares``."""
        for i, letter in enumerate(word):
            yield letter, word[:i] + "?" + word[i + 1 :]


# %%
# Two thirds of the words teach, every third is new.
new = np.arange(len(words)) % 3 == 0
old_words = [word for word, is_new in zip(words, new, strict=True) if not is_new]
new_words = [word for word, is_new in zip(words, new, strict=True) if is_new]
metric = Kernelized(LFDA(2, shrinkage=0.3), kernel=Groups())
Z_old = metric.fit_transform(old_words, language[~new])
Z_new = metric.transform(new_words)
right = KNeighborsClassifier(5).fit(Z_old, language[~new]).score(Z_new, language[new])

# %%
# New words, placed by their letters alone; and the letters that keep two words apart: each of them
# is hidden in turn, and the bars say how much nearer the words are then.
figure, (ax, bars) = plt.subplots(
    1, 2, figsize=(11, 5), width_ratios=(2.5, 1), layout="constrained"
)
for name in WORDS:
    ax.plot(*Z_new[language[new] == name].T, "o", label=name)
ax.set(title=f"new words: {right:.0%} of answers by 5 neighbours are right", xticks=[], yticks=[])
ax.margins(x=0.12)
ax.legend()
for z, word in zip(Z_new, new_words, strict=True):
    ax.annotate(word, z, fontsize=8, xytext=(3, 3), textcoords="offset points")
one, other = "thought", "gedacht"
found = part_shares(metric, one, other)
bars.barh(range(len(one)), found.shares / found.value)
bars.set_yticks(range(len(one)), found.parts)
bars.invert_yaxis()
bars.axvline(0, color="grey", linewidth=0.8)
bars.set(title=f"what parts {one!r} from {other!r}", xlabel="share of the squared distance")

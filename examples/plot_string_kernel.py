"""
A kernel of your own, for words
===============================

Points need not be vectors. Here they are words of four languages, and the kernel counts the groups
of letters that two words share.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import LFDA, Kernelized

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
# then a list of counts, and two words are as alike as the cosine of their counts.
def groups(word):
    """All groups of one to three letters."""
    marked = f"<{word}>"
    return [marked[i : i + k] for k in (1, 2, 3) for i in range(len(marked) - k + 1)]


def string_kernel(some, others):
    """Cosine of the counts, one row for each of the first words."""
    known = sorted({group for word in [*some, *others] for group in groups(word)})

    def counts(list_of_words):
        table = np.array([[groups(word).count(g) for g in known] for word in list_of_words], float)
        return table / np.linalg.norm(table, axis=1, keepdims=True)

    return counts(some) @ counts(others).T


# %%
# Two thirds of the words teach, every third is new. ``kernel="precomputed"`` takes the values.
new = np.arange(len(words)) % 3 == 0
old_words = [word for word, is_new in zip(words, new, strict=True) if not is_new]
new_words = [word for word, is_new in zip(words, new, strict=True) if is_new]
metric = Kernelized(LFDA(2, shrinkage=0.3), kernel="precomputed")
Z_old = metric.fit_transform(string_kernel(old_words, old_words), language[~new])
Z_new = metric.transform(string_kernel(new_words, old_words))
right = KNeighborsClassifier(5).fit(Z_old, language[~new]).score(Z_new, language[new])

# %%
# New words, placed by their letters alone.
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for name in WORDS:
    ax.plot(*Z_new[language[new] == name].T, "o", label=name)
ax.set(title=f"new words: {right:.0%} of answers by 5 neighbours are right", xticks=[], yticks=[])
ax.margins(x=0.12)
ax.legend()
for z, word in zip(Z_new, new_words, strict=True):
    ax.annotate(word, z, fontsize=8, xytext=(3, 3), textcoords="offset points")

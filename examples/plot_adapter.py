"""
Adapt the vectors that you have
===============================

A network has made vectors of questions and of answers. Some questions are known with their answers.
An adapter learns from them, and says on questions left out how much it finds. Where
nothing is surely better, as for queries alone with twelve known pairs, vectors stay as they are.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.preprocessing import normalize

from kernelmetric import Adapter
from kernelmetric.evaluation import retrieval_scores

rng = np.random.RandomState(0)
n_things, n_dims = 1_000, 64
meaning = rng.standard_normal((n_things, 24)) @ rng.standard_normal((24, n_dims))
style = rng.standard_normal((6, n_dims))  # six directions of tone and length


def draw_vectors():
    """Vectors of one table: what a text means, its style, and some noise."""
    tone = 2.5 * rng.standard_normal((n_things, 6)) @ style
    return normalize(meaning + tone + 3 * rng.standard_normal((n_things, n_dims)))


questions, answers = draw_vectors(), draw_vectors()
new = np.arange(600, 1_000)  # questions that no adapter sees
asked = np.column_stack([np.arange(len(new)), new])

# %%
# **With 12, 50, 200 and 600 known pairs.** The symmetric map moves questions and answers. That of
# queries leaves the index of answers as it is.
counts = [12, 50, 200, 600]
plain = retrieval_scores(questions[new], answers, asked).recall[1]
found = {"symmetric": [], "query": []}
for side, recalls in found.items():
    for count in counts:
        known = np.column_stack([np.arange(count), np.arange(count)])
        adapter = Adapter(side).fit(questions, documents=answers, pairs=known)
        Q, D = adapter.transform(questions[new]), adapter.transform_documents(answers)
        recalls.append(retrieval_scores(Q, D, asked).recall[1])
        print(
            f"{side:9} {count:3} pairs: recall@1 {recalls[-1].value:.3f}, {adapter.recipe_['map']}"
        )

# %%
# **Fewer dimensions.** Coordinates come by the variance that the map leaves them.
known = np.column_stack([np.arange(600), np.arange(600)])
widths = [64, 32, 24, 16, 8]
cut = []
for width in widths:
    adapter = Adapter(n_components=width, softmax=False)
    adapter.fit(questions, documents=answers, pairs=known)
    Q, D = adapter.transform(questions[new]), adapter.transform_documents(answers)
    cut.append(retrieval_scores(Q, D, asked).recall[1])

# %%
# **Look at it.** Grey is the recall of the vectors as they are.
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
names = {"symmetric": "both tables mapped", "query": "queries alone"}
for colour, (side, recalls) in zip(("tab:blue", "tab:orange"), found.items(), strict=True):
    values, low, high = np.transpose(recalls)
    axes[0].plot(counts, values, "o-", color=colour, label=names[side])
    axes[0].fill_between(counts, low, high, color=colour, alpha=0.15)
values, low, high = np.transpose(cut)
axes[1].plot(widths, values, "o-", color="tab:blue")
axes[1].fill_between(widths, low, high, color="tab:blue", alpha=0.15)
for ax in axes:
    ax.axhline(plain.value, color="0.4", linestyle="--", label="as they are")
    ax.set_ylim(0, 1)
axes[0].set(xscale="log", xlabel="known pairs", ylabel="recall@1 of new questions")
axes[0].set_xticks(counts, [str(count) for count in counts])
axes[0].minorticks_off()
axes[0].legend(frameon=False, loc="upper left")
axes[1].set(xlabel="dimensions that are kept", xticks=widths[::-1])
axes[1].set_title("600 pairs", fontsize=11)
axes[0].set_title("64 dimensions", fontsize=11)
plt.show()

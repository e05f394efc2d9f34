"""The order of the gallery: tutorials first, then the short programs from simple to long."""

from pathlib import Path


class TutorialsFirst:
    """Sphinx-gallery's key of a program: whether its title says tutorial, and its length."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, name):
        """A key that sorts the programs of the folder."""
        lines = (self.folder / name).read_text(encoding="utf-8").splitlines()
        return "Tutorial" not in "".join(lines[:2]), len(lines), name

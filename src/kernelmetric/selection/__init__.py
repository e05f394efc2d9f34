"""What "auto" means: the kernel and the space, when the user leaves them to the data.

The strings are resolved here and nowhere else; rooms above accept them, rooms below never see
them.
"""

from kernelmetric.selection._automatic import automatic_kernel, automatic_space

__all__ = ["automatic_kernel", "automatic_space"]

"""Compiles ``_native.c`` while the package is built, where a C compiler is found.

Without one, or with ``KERNELMETRIC_PURE=1`` in the environment, the package is pure Python and all
of it works, more slowly. The wheel is tagged for the platform it was compiled on, and for every
Python: the library does not know Python.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/kernelmetric/compute/backends/_native.c")
LIBRARY = SOURCE.with_name("libkernelmetric.so")
FLAGS = ("-O3", "-std=c11", "-ffp-contract=fast", "-fPIC", "-shared")


class CompilationError(Exception):
    """Why there will be no library."""


class NativeKernel(BuildHookInterface):
    """Adds the compiled library to the wheel, or to the source tree of an editable install."""

    def initialize(self, version, build_data):
        """Compile before the files of the wheel are collected."""
        if self.target_name != "wheel":
            return
        try:
            compile_library(Path(self.root))
        except CompilationError as reason:
            self.app.display_warning(f"{reason} The package will be pure Python.")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["artifacts"].append(f"/{LIBRARY}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def compile_library(root):
    """Compile the library, or raise CompilationError; what was there before is gone."""
    (root / LIBRARY).unlink(missing_ok=True)
    if os.environ.get("KERNELMETRIC_PURE", "0") not in ("", "0"):
        raise CompilationError("KERNELMETRIC_PURE is set.")
    compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc")]
    if compiler == [None] or sys.platform == "win32":
        raise CompilationError("No C compiler was found.")
    command = [*compiler, *FLAGS, "-o", str(root / LIBRARY), str(root / SOURCE), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or error
        raise CompilationError(f"{shlex.join(command)} failed: {reason}") from error

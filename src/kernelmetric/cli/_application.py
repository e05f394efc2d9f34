"""The group of commands, and ``main``, which names a missing extra in a sentence."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelmetric._pulse import arrived

if TYPE_CHECKING:
    import click

# In the order of ``kernelmetric --help``; each is a function in the file of its name.
COMMANDS = (
    "demo", "fit", "predict", "evaluate", "transform", "neighbors", "explain", "spread", "label",
    "link", "adapt", "check",
)  # fmt: skip


def main() -> None:
    """Run the command line; a missing extra ends it with a sentence and exit code 2."""
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks "±" gets "\\xb1", no traceback
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        application = build_application()
        arrived()
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        arrived()
        if (error.name or "").partition(".")[0] not in {"click", "rich"}:
            raise
        sys.stderr.write(
            f"The kernelmetric command needs {error.name}, which is not installed: "
            'try pip install "kernelmetric[cli]", or pip install ".[cli]" in a checkout.\n'
        )
        sys.exit(2)
    application(prog_name="kernelmetric")


def build_application() -> click.Group:
    """The commands, as a click group.

    Returns
    -------
    click.Group
        ``kernelmetric`` with its commands.
    """
    import click
    import rich  # noqa: F401 (the commands use it: better to miss it now)

    from kernelmetric import __version__
    from kernelmetric.cli._talk import spoken

    class InOrder(click.Group):
        """Lists the commands in the order in which a user meets them; all fail alike."""

        def invoke(self, ctx: click.Context) -> Any:
            with spoken():
                return super().invoke(ctx)

        def list_commands(self, ctx: click.Context) -> list[str]:
            return list(self.commands)

    settings: Any = {"help_option_names": ["-h", "--help"], "show_default": True}

    @click.group(cls=InOrder, context_settings=settings)
    @click.version_option(__version__, prog_name="kernelmetric", message="%(prog)s %(version)s")
    def application() -> None:
        """Distances learned from data, linear or through kernels.

        \b
        From a table to a learned metric, an honest comparison and a page to open:
          kernelmetric fit flowers.csv --label species --out model.km --report page.html
        """

    for name in COMMANDS:
        module = import_module(f"kernelmetric.cli._{name}")
        application.add_command(getattr(module, name))
    return application

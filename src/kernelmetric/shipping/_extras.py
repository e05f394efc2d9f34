"""The version of this library, as files and models say it."""


def library_version() -> str:
    """The version of this library, which stands in the flat API above all rooms."""
    from kernelmetric import __version__

    return __version__

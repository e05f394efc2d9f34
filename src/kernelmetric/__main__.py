"""``python -m kernelmetric`` is ``kernelmetric``."""

from kernelmetric.cli import main

if __name__ == "__main__":
    main()

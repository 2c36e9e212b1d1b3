"""`python -m domkl`: the command line."""

from domkl.cli.main import entry

if __name__ == "__main__":
    entry()

"""`python -m replicator` is the same as the `replicator` command."""

from replicator.cli.main import main

if __name__ == "__main__":
    main()

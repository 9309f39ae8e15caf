"""What a SparkApplication names as its main file: the same command line as everywhere else."""

from replicator.cli.main import main

main()

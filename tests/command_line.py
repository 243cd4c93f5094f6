"""The command line as tests call it."""

from skdcf.apps.cli import main


def run(*arguments):
    return main([str(argument) for argument in arguments])

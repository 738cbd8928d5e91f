"""The console script, and `python -m perfdoctor`: gets ready for a Ctrl-C before anything that takes time."""

import signal


def main() -> None:
    """The command line is a tenth of a second of imports. Until it handles signals, a Ctrl-C ends the process
    as it ends any other program, instead of with Python's traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if it is ignored, as in `... &`
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from perfdoctor import cli

    cli.main()


if __name__ == "__main__":
    main()

"""Ctrl-C, as tests send it to themselves."""

import os
import signal


def listen(case):
    """Has Python listen to Ctrl-C until the test is over. A shell's background jobs are not told of it, and Python would not be either."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    case.addCleanup(signal.signal, signal.SIGINT, before)


def press():
    os.kill(os.getpid(), signal.SIGINT)

"""Functions of Python that a device would answer, where a simulated one has no answer; places of warnings."""
import functools
import os
import sys
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__))


def install(torch):
    _elapsed_time(torch)
    _places_of_warnings()


def _elapsed_time(torch):
    """No time passes between simulated events: the runtime answers a millisecond, because programs divide by it."""
    event = torch.cuda.Event
    measured = event.elapsed_time

    @functools.wraps(measured)
    def elapsed_time(self, end_event):
        ms = measured(self, end_event)
        return ms if ms > 0 else 1.0

    event.elapsed_time = elapsed_time


def _places_of_warnings():
    """A warning of PyTorch in C++ names the innermost frame of Python, which may be one of this package around the
    function that warns. The user has to see the frame that it would name without it."""
    show = warnings._showwarnmsg

    @functools.wraps(show)
    def showwarnmsg(message):
        if os.path.dirname(message.filename) == _HERE:
            frame = sys._getframe(1)
            while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != (message.filename, message.lineno):
                frame = frame.f_back
            while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
                frame = frame.f_back
            if frame is not None:
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
        return show(message)

    warnings._showwarnmsg = showwarnmsg


def rank_proposals(rpn):
    """torchvision's region proposals: boxes are kept by probabilities, all above the threshold of 0 that it sets."""
    from . import rules

    network = rpn.RegionProposalNetwork
    network.filter_proposals = rules.among_probabilities(network.filter_proposals)

"""Functions of Python that a device would answer, where a simulated one has no answer."""
import functools

from . import notes


def install(torch):
    _elapsed_time(torch)


def _elapsed_time(torch):
    """No time passes between simulated events: the runtime answers a millisecond, because programs divide by it."""
    event = torch.cuda.Event
    measured = event.elapsed_time

    @functools.wraps(measured)
    def elapsed_time(self, end_event):
        ms = measured(self, end_event)
        notes.made_up("time")
        return ms if ms > 0 else 1.0

    event.elapsed_time = elapsed_time


def rank_proposals(rpn):
    """torchvision's region proposals: boxes are kept by probabilities, all above the threshold of 0 that it sets."""
    from . import rules

    network = rpn.RegionProposalNetwork
    network.filter_proposals = rules.among_probabilities(network.filter_proposals)

"""What a congestion controller in Python looks like."""

from __future__ import annotations

from ._cede import Feedback, Path, Timeout


class Controller:
    """Decides how much of one connection may be under way. Subclass it: an object is made for each connection.

    After each call these attributes are read:

    * `cwnd_bytes`: octets that may be under way. Less than a packet means one packet every `packet / cwnd` round trips.
    * `pacing_bits_per_s`: packets leave no faster than this; None where the window alone rules.
    * `burst_bytes`: octets that may leave back to back under pacing; None for any number.
    * `timer_s`: when `on_timer` is wanted; None for never.
    * `queueing_delay_s`: the queueing delay that is believed in, for the records; None for no opinion.

    `answers_marks` is read once: a controller that answers `Feedback.ce_marked` as it would a loss sets it to True. The packets of others are
    never marked (ECN, RFC 3168, section 5).

    Four more methods are called where a subclass has them: `on_sent(sent)`, whose answer comes back as `Packet.tag`; `on_timer(now_s)`;
    `on_mss(mss_bytes)`, where the path's packet size has changed; and `on_undo()`, where the last losses, or the last timeout, turned out to be
    none, since packets had overtaken one another or were slow: what they took may be given back. Times are in seconds since the run began.
    """

    pacing_bits_per_s: float | None = None
    burst_bytes: int | None = None
    timer_s: float | None = None
    queueing_delay_s: float | None = None
    answers_marks: bool = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cwnd_bytes: float = path.initial_cwnd_bytes

    def on_feedback(self, feedback: Feedback) -> None:
        """An acknowledgement arrived, or a loss was found."""
        raise NotImplementedError(f"{type(self).__name__}.on_feedback")

    def on_timeout(self, timeout: Timeout) -> None:
        """The retransmission timer ran out: without a rule of its own, a window of one packet."""
        self.cwnd_bytes = self.path.mss_bytes

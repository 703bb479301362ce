"""A congestion controller of one's own beside Cede's: how it uses a link, leaves it to a CUBIC flow and takes it back, and what the
battery says of it.

    pip install ./python
    python python/examples/compare.py
"""

import cede

LINK = """\
name = "beside-cubic"
duration = "60 s"

[link]
rate = "20 Mbit/s"
delay = "20 ms"
buffer = "200 ms"

[[flow]]
name = "own"
protocol = "utp"
controller = "ledbat"

[[flow]]
name = "cubic"
protocol = "tcp"
controller = "cubic"
start = "20 s"
stop = "40 s"
"""


class Timid(cede.Controller):
    """Additive increase while the queue is below 15 ms; a tenth off once in a round trip while it is above; half after a loss."""

    target_s = 0.015

    def __init__(self, path):
        super().__init__(path)
        self.base_s = float("inf")
        self.quiet_until_s = 0.0

    def on_feedback(self, feedback):
        mss_bytes = self.path.mss_bytes
        if feedback.rtt_s is not None:
            self.base_s = min(self.base_s, feedback.rtt_s)
            self.queueing_delay_s = feedback.rtt_s - self.base_s
        if feedback.lost_bytes:
            self.cut(feedback, 0.5)
        elif self.queueing_delay_s is not None and self.queueing_delay_s > self.target_s:
            self.cut(feedback, 0.9)
        elif not feedback.app_limited:
            self.cwnd_bytes += mss_bytes * feedback.acked_bytes / self.cwnd_bytes

    def cut(self, feedback, factor):
        """At most once in a round trip: what is under way left before the last cut could show."""
        if feedback.now_s >= self.quiet_until_s:
            self.cwnd_bytes = max(2 * self.path.mss_bytes, factor * self.cwnd_bytes)
            self.quiet_until_s = feedback.now_s + feedback.srtt_s


def mean_between(result, column, begin_s, end_s):
    """The mean of a flow's column over a part of the time."""
    values = [x for t_s, x in zip(result.series["t_s"], column) if begin_s < t_s <= end_s]
    return sum(values) / len(values)


def main():
    print("Mbit/s    alone  beside CUBIC  alone again")
    for name, stand_ins in [("ledbat", {}), ("cede", {}), ("Timid", {"own": Timid})]:
        choice = {} if stand_ins else {"flow.own.controller": name}
        result = cede.run(LINK, set=choice, controllers=stand_ins)
        rates = result.series["flows"]["own"]["rate_mbps"]
        alone, beside, again = (mean_between(result, rates, *span) for span in [(10, 20), (25, 40), (45, 60)])
        print(f"{name:8} {alone:6.2f} {beside:13.2f} {again:12.2f}")
    print()
    for case in cede.check(Timid, only=["alone", "yields"]):
        print(f"{'passed' if case['passed'] else 'missed'}  {case['case']}")


if __name__ == "__main__":
    main()

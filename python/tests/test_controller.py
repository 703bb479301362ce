"""Controllers that are written in Python."""

import gc
import threading
import time
import unittest
import weakref

import cede
import ctrl_c

PATH = """\
name = "path"
duration = "12 s"
[link]
rate = "10 Mbit/s"
delay = "20 ms"
buffer = "200 ms"
[[flow]]
name = "own"
protocol = "utp"
controller = "reno"
"""


class Spare(cede.Controller):
    """As many packets under way as the path takes at its base RTT, and four more."""

    def __init__(self, path):
        super().__init__(path)
        self.base_s = float("inf")
        self.cut_at = 0

    def on_feedback(self, feedback):
        mss_bytes = self.path.mss_bytes
        if feedback.lost:
            if feedback.lost[-1].number >= self.cut_at:
                self.cut_at = feedback.next_number
                self.cwnd_bytes = max(2 * mss_bytes, self.cwnd_bytes / 2)
        elif feedback.rtt_s and not feedback.app_limited:
            self.base_s = min(self.base_s, feedback.rtt_s)
            fits = self.cwnd_bytes * self.base_s / feedback.rtt_s
            step = (fits + 4 * mss_bytes - self.cwnd_bytes) / 8
            self.cwnd_bytes = max(2 * mss_bytes, self.cwnd_bytes + step * feedback.acked_bytes / self.cwnd_bytes)
            self.queueing_delay_s = feedback.rtt_s - self.base_s


class Paced(cede.Controller):
    """5 Mbit/s, from a timer's first call on."""

    heard = []

    def __init__(self, path):
        super().__init__(path)
        self.cwnd_bytes = 1_000_000
        self.pacing_bits_per_s, self.burst_bytes = 1e5, 2 * path.mss_bytes
        self.timer_s = 1.0

    def on_timer(self, now_s):
        self.heard.append(("timer", now_s))
        self.pacing_bits_per_s, self.timer_s = 5e6, None

    def on_sent(self, sent):
        return sent.number % 7

    def on_feedback(self, feedback):
        for packet in feedback.acked:
            assert packet.tag == packet.number % 7, (packet.tag, packet.number)
        self.heard.append(("acked", sum(packet.bytes for packet in feedback.acked) - feedback.acked_bytes))


class Controllers(unittest.TestCase):
    def test_it_fills_the_link_and_keeps_the_queue_short(self):
        result = cede.run(PATH, set={"warmup": "4 s"}, controllers={"own": Spare})
        self.assertEqual(result.flows["own"]["controller"], "Spare")
        self.assertGreater(result.links["bottleneck"]["efficiency"], 0.95)
        self.assertLess(result.links["bottleneck"]["delays"]["p95_ms"], 12)
        believed = result.series["flows"]["own"]["believed_queue_ms"]
        self.assertAlmostEqual(believed[-1], result.series["links"]["bottleneck"]["queue_mean_ms"][-1], delta=2.5)
        again = cede.run(PATH, set={"warmup": "4 s"}, controllers={"own": Spare})
        self.assertEqual(again.summary["tape"], result.summary["tape"])

    def test_pacing_timers_and_tags_work(self):
        Paced.heard.clear()
        result = cede.run(PATH, set={"warmup": "2 s"}, controllers={"own": Paced})
        self.assertAlmostEqual(result.flows["own"]["rate_mbps"], 5.0, delta=0.3)
        timers = [at for what, at in Paced.heard if what == "timer"]
        # The end that receives has a controller, too.
        self.assertEqual([round(at, 6) for at in timers], [1.0, 1.0])
        self.assertEqual({left for what, left in Paced.heard if what == "acked"}, {0})

    def test_what_it_raises_is_raised(self):
        class Failing(Spare):
            def on_feedback(self, feedback):
                raise ZeroDivisionError("of its own")

        class Windowless(cede.Controller):
            def __init__(self, path):
                del path

        class Infinite(Spare):
            def on_feedback(self, feedback):
                self.cwnd_bytes = float("inf")

        for error, controller in [(ZeroDivisionError, Failing), (TypeError, Windowless), (ValueError, Infinite)]:
            with self.subTest(controller=controller.__name__), self.assertRaises(error):
                cede.run(PATH, controllers={"own": controller})
        with self.assertRaises(ZeroDivisionError):
            cede.check(Failing, only=["yields/cubic"])
        with self.assertRaises(NotImplementedError):
            cede.run(PATH, controllers={"own": cede.Controller})

    def test_a_belief_that_is_no_delay_is_told(self):
        for belief, error in [(-0.01, ValueError), ("long", TypeError)]:
            class Believer(Spare):
                queueing_delay_s = belief

                def on_feedback(self, feedback):
                    pass

            with self.subTest(belief=belief), self.assertRaises(error):
                cede.run(PATH, controllers={"own": Believer})

    def test_who_answers_marks_is_marked_and_nobody_else(self):
        class Halving(cede.Controller):
            def __init__(self, path):
                super().__init__(path)
                self.marked = 0

            def on_feedback(self, feedback):
                if feedback.ce_marked or feedback.lost_bytes:
                    self.cwnd_bytes = max(self.path.mss_bytes, self.cwnd_bytes / 2)
                else:
                    self.cwnd_bytes += self.path.mss_bytes * feedback.acked_bytes / self.cwnd_bytes

        class Answering(Halving):
            answers_marks = True

        marking = {"flow.own.protocol": "tcp", "flow.own.tcp.ecn": True, "link.ecn": True, "link.queue": "codel"}
        marked = {
            controller: cede.run(PATH, set=marking, controllers={"own": controller}).links["bottleneck"]["marked"]
            for controller in (Halving, Answering)
        }
        self.assertEqual(marked[Halving], 0)
        self.assertGreater(marked[Answering], 0)

    def test_who_hears_of_losses_that_were_none_can_give_back_what_they_took(self):
        class Giving(Spare):
            before, heard = None, 0

            def on_feedback(self, feedback):
                window = self.cwnd_bytes
                super().on_feedback(feedback)
                if feedback.lost and self.cwnd_bytes < window:
                    self.before = window

            def on_undo(self):
                Giving.heard += 1
                self.cut_at = 0
                self.cwnd_bytes = max(self.cwnd_bytes, self.before)

        overtaking = {"link.jitter": "100 ms", "link.jitter_reorders": True}
        internet, by_time = {"flow.own.utp.internet": True}, {"flow.own.protocol": "tcp", "flow.own.tcp.rack": True}
        for transport in (internet, by_time):
            with self.subTest(transport=transport):
                Giving.heard = 0
                keeping, giving = (
                    cede.run(PATH, set=overtaking | transport, controllers={"own": controller}).flows["own"]["rate_mbps"]
                    for controller in (Spare, Giving)
                )
                self.assertGreater(Giving.heard, 3)
                self.assertGreater(giving, 1.2 * keeping)
        # Where they are counted nothing is told.
        Giving.heard = 0
        cede.run(PATH, set=overtaking, controllers={"own": Giving})
        self.assertEqual(Giving.heard, 0)

    def test_nothing_is_kept_of_it(self):
        made = []

        def make(path):
            made.append(weakref.ref(controller := Spare(path)))
            return controller

        cede.run(PATH, controllers={"own": make})
        gc.collect()
        self.assertTrue(made and all(reference() is None for reference in made))

    def test_ctrl_c_ends_the_battery(self):
        ctrl_c.listen(self)
        threading.Timer(0.3, ctrl_c.press).start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            cede.check("bbr", jobs=1)
        # On one core all of it takes far longer; whoever is heard at its end only would be heard then.
        self.assertLess(time.monotonic() - began, 4)

    def test_the_battery_takes_it(self):
        (case,) = cede.check(Spare, only=["yields/cubic"])
        self.assertEqual((case["case"], case["passed"]), ("yields/cubic", True))
        (own,) = cede.check("cede", only=["yields/cubic"], over="tcp")
        self.assertTrue(own["passed"])
        def vegas(path):
            return Spare(path)

        # By the name of one of ours.
        self.assertEqual(cede.check(vegas, only="yields/cubic")[0]["findings"], case["findings"])
        with self.assertRaisesRegex(ValueError, "no parameters to set"):
            cede.check(Spare, only="yields/cubic", set={"spare": 3})
        (own,) = cede.check("ledbat", only="yields/cubic", set={"target": "25 ms", "signal": "rtt", "clamp": False, "gain": 1})
        self.assertTrue(own["passed"])
        with self.assertRaisesRegex(ValueError, "no controller is called"):
            cede.check("nobody")
        with self.assertRaisesRegex(ValueError, "utp"):
            cede.check("cede", over="quic")
        self.assertIn("target", [parameter["name"] for parameter in cede.controllers()["ledbat"]["parameters"]])


if __name__ == "__main__":
    unittest.main()

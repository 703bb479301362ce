"""Scenarios and swarms."""

import math
import pickle
import tempfile
import threading
import time
import unittest
from array import array
from pathlib import Path

import cede
import ctrl_c

TEXT = """\
name = "short"
duration = "4 s"
[link]
rate = "10 Mbit/s"
delay = "20 ms"
buffer = "50 packets"
[[flow]]
name = "own"
protocol = "utp"
controller = "ledbat"
[assert]
flow.own.share = "> 0.9"
"""

SWARM = """\
name = "few"
[swarm]
content = "1 MiB"
duration = "20 min"
[[group]]
name = "seed"
role = "seed"
uplink = "1 Mbit/s"
downlink = "10 Mbit/s"
[[group]]
name = "leecher"
count = 3
uplink = "1 Mbit/s"
downlink = "10 Mbit/s"
"""


class Scenarios(unittest.TestCase):
    def test_a_seed_gives_the_same_and_overrides_change_it(self):
        first, again = cede.run("latecomer", seed=5), cede.run("latecomer", seed=5)
        self.assertEqual(first.summary["tape"], again.summary["tape"])
        self.assertNotEqual(first.summary["tape"], cede.run("latecomer", seed=6).summary["tape"])
        changed = cede.run("latecomer", set={"flow.late.controller": "reno"}, seed=5)
        self.assertEqual(changed.flows["late"]["controller"], "reno")
        self.assertNotEqual(changed.summary["tape"], first.summary["tape"])

    def test_text_and_files_are_scenarios_and_series_fit_the_summary(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "short.toml"
            path.write_text(TEXT)
            of_file = cede.run(path)
        result = cede.run(TEXT)
        self.assertEqual(result.summary, of_file.summary)
        self.assertTrue(result.summary["assertions"][0]["holds"])
        times, rates = result.series["t_s"], result.series["flows"]["own"]["rate_mbps"]
        self.assertIsInstance(times, array)
        self.assertEqual(len(times), len(rates))
        self.assertAlmostEqual(times[-1], 4.0)
        self.assertAlmostEqual(sum(rates) / len(rates), result.flows["own"]["rate_mbps"], places=2)
        self.assertTrue(math.isnan(result.series["flows"]["own"]["ssthresh_bytes"][0]))
        self.assertLess(max(result.series["links"]["bottleneck"]["queue_max_ms"]), 200)

    def test_values_of_python_are_values_of_a_scenario(self):
        result = cede.run(TEXT, set={"flow.own.controller": {"name": "ledbat", "target": "40 ms"}, "link.loss": 0.0, "seed": 3})
        self.assertEqual((result.summary["seed"], result.flows["own"]["controller"]), (3, "ledbat"))

    def test_numbers_of_numpy_are_numbers(self):
        class Like:
            """What numpy's scalars and arrays have in common."""

            def __init__(self, value):
                self.value = value

            def tolist(self):
                return self.value

        values = {"link.loss": Like(0.0), "flow.own.count": Like(2), "record.controllers": Like(True), "record.links": Like(["return"])}
        result = cede.run(TEXT, set={**values, "duration": "100 ms"})
        self.assertEqual(list(result.flows), ["own-1", "own-2"])

    def test_errors_can_be_handed_on_between_processes(self):
        with self.assertRaises(cede.ScenarioError) as raised:
            cede.run(TEXT, set={"link.rat": "3 Mbit/s"})
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((type(again), str(again)), (cede.ScenarioError, str(raised.exception)))

    def test_what_means_nothing_is_told_with_its_place(self):
        with self.assertRaisesRegex(cede.ScenarioError, "did you mean `rate`"):
            cede.run(TEXT, set={"link.rat": "3 Mbit/s"})
        with self.assertRaisesRegex(cede.ScenarioError, "there are own"):
            cede.run(TEXT, controllers={"other": cede.Controller})
        with self.assertRaises(FileNotFoundError):
            cede.run("no-such-scenario")
        for wrong in ["link.loss=0.1", ["link.loss"], 3]:
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, "set is a mapping"):
                cede.run(TEXT, set=wrong)

    def test_a_path_may_be_octets(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "short.toml")
            path.write_text(TEXT)
            self.assertEqual(cede.run(bytes(path)).summary, cede.run(path).summary)

    def test_a_swarm_runs(self):
        result = cede.run(SWARM, seed=1)
        self.assertEqual((result.summary["leechers"], result.summary["complete"]), (3, 3))
        self.assertGreater(result.summary["completion_mean_s"], 8)
        with self.assertRaises(cede.ScenarioError):
            cede.run(SWARM, controllers={"seed": cede.Controller})

    def test_other_threads_go_on_and_ctrl_c_ends_it(self):
        ticks = []
        ctrl_c.listen(self)
        timer = threading.Timer(0.3, lambda: (ticks.append(1), ctrl_c.press()))
        timer.start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            cede.run(TEXT, set={"duration": "1000000 s"})
        self.assertEqual(ticks, [1])
        self.assertLess(time.monotonic() - began, 60)


if __name__ == "__main__":
    unittest.main()

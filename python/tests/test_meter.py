"""Captures."""

import gzip
import os
import tempfile
import unittest
from pathlib import Path

import cede

CAPTURES = Path(os.environ["CEDE_WORKSPACE"]) / "crates/cede-meter/tests/vectors"


class Captures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.captures = []
        for name in ["utp_1m", "tcp_1m"]:
            path = Path(cls.folder.name) / f"{name}.pcap"
            path.write_bytes(gzip.decompress((CAPTURES / f"{name}.pcap.gz").read_bytes()))
            cls.captures.append(path)

    def test_samples_and_flows_belong_together(self):
        found = cede.meter(*self.captures, samples=True, min_samples=1)
        self.assertTrue(found.hosts and found.flows)
        columns = found.samples
        self.assertEqual(len({len(column) for column in columns.values()}), 1)
        direct = [0] * len(found.flows)
        for flow, echoed in zip(columns["flow"], columns["echoed"]):
            direct[flow] += 1 - echoed
        self.assertEqual(direct, [(flow["direct"] or {"samples": 0})["samples"] for flow in found.flows])
        self.assertGreaterEqual(min(columns["queue_ms"]), 0)
        self.assertEqual(found.damage, [])

    def test_whatever_can_be_read_from_is_a_capture(self):
        capture = self.captures[0]
        whole = cede.meter(capture, min_samples=1)
        with gzip.open(CAPTURES / "utp_1m.pcap.gz") as file:
            self.assertEqual(cede.meter(file, min_samples=1).hosts, whole.hosts)
        cut = Path(self.folder.name) / "cut.pcap"
        cut.write_bytes(capture.read_bytes()[:-7])
        self.assertEqual(len(cede.meter(cut, min_samples=1).damage), 1)

    def test_what_cannot_be_is_told(self):
        with self.assertRaises(FileNotFoundError):
            cede.meter("no-such-file.pcap")
        with self.assertRaisesRegex(ValueError, ": at octet 0: neither pcap nor pcapng"):
            cede.meter(__file__)
        for options in [{"estimator": "both"}, {"base_s": -1.0}, {"protocol": "quic"}, {"filter": "host and"}]:
            with self.subTest(options=options), self.assertRaises(ValueError):
                cede.meter(self.captures[0], **options)
        with self.assertRaises(TypeError):
            cede.meter()

        class Wrong:
            def read(self, size):
                return "text"

        with self.assertRaisesRegex(OSError, "no bytes"):
            cede.meter(Wrong())
        with self.assertRaisesRegex(TypeError, "3 is neither"):
            cede.meter(3)
        with self.assertRaisesRegex(OSError, self.folder.name):
            cede.meter(self.folder.name)

    def test_what_reading_raises_is_raised(self):
        class Impatient:
            def read(self, size):
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            cede.meter(Impatient())


if __name__ == "__main__":
    unittest.main()

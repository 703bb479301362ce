"""Sockets."""

import io
import json
import threading
import time
import unittest

import cede
from ctrl_c import listen, press

LONG_S = 20


class Sockets(unittest.TestCase):
    def pair(self, **choice):
        """Both ends of a stream."""
        socket = cede.Socket("127.0.0.1:0")
        self.addCleanup(socket.close)
        near = cede.connect("%s:%d" % socket.address, timeout_s=LONG_S, **choice)
        far = socket.accept(timeout_s=LONG_S)
        near.timeout_s = far.timeout_s = LONG_S
        self.addCleanup(near.abort)
        self.addCleanup(far.abort)
        self.assertEqual(near.peer, socket.address)
        return near, far

    def in_background(self, work):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.addCleanup(thread.join, LONG_S)

    def test_megabytes_arrive_both_ways_at_once(self):
        content = bytes(range(251)) * 10_000
        near, far = self.pair(controller="ledbat++", set={"target": "20 ms"})

        def give(stream):
            with io.BufferedWriter(stream, 1000) as writer:
                for at in range(0, len(content), 997):
                    writer.write(content[at : at + 997])

        # Half closes: what the other end says is read after our own end.
        heard = []
        self.in_background(lambda: heard.append(far.read()))
        far_gives = memoryview(content)
        self.in_background(lambda: (far.write(far_gives), far.finish()))
        self.assertEqual(near.write(content), len(content))
        near.finish()
        self.assertEqual(near.read(), content)
        self.assertEqual(near.status()["bytes_acked"], len(content))
        self.assertGreater(near.status()["srtt_s"], 0)
        give_near, give_far = self.pair()
        self.in_background(lambda: give(give_near))
        self.assertEqual(give_far.read(), content)
        self.assertEqual(heard, [content])

    def test_it_is_a_file(self):
        near, far = self.pair()
        with near, io.TextIOWrapper(near) as text:
            json.dump({"a": 1}, text)
            text.write("\n\nlast")
            text.flush()
            self.in_background(near.finish)
            lines = io.TextIOWrapper(io.BufferedReader(far)).readlines()
        self.assertEqual(lines, ['{"a": 1}\n', "\n", "last"])
        self.assertTrue(near.closed)
        with self.assertRaises(ValueError):
            near.write(b"more")
        self.assertIn("closed", repr(near))

    def test_waits_end_in_time(self):
        near, _ = self.pair()
        near.timeout_s = 0.1
        began = time.monotonic()
        for call in [lambda: near.read(1), lambda: cede.Socket("127.0.0.1:0").accept(timeout_s=0.1)]:
            with self.assertRaises(TimeoutError):
                call()
        self.assertLess(time.monotonic() - began, 5)
        # Nobody reads: at some time no more is taken.
        with self.assertRaises(TimeoutError):
            for _ in range(100):
                near.write(bytes(1 << 20))

    def test_ctrl_c_ends_a_wait(self):
        listen(self)
        near, _ = self.pair()
        near.timeout_s = None
        threading.Timer(0.3, press).start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            near.read(1)
        self.assertLess(time.monotonic() - began, 5)

    def test_failures_are_those_of_sockets(self):
        near, far = self.pair()
        far.abort()
        with self.assertRaises(ConnectionResetError):
            near.read(1)
        near, far = self.pair()
        near.finish()
        with self.assertRaises(BrokenPipeError):
            near.write(b"after the end")
        # An exception within `with` is no good end: the peer hears of it.
        near, far = self.pair()
        with self.assertRaises(ZeroDivisionError), far:
            far.write(b"half of")
            1 / 0
        with self.assertRaises(ConnectionResetError):
            near.read()
        with self.assertRaises(OSError):
            cede.connect("no port")
        with cede.Socket("127.0.0.1:0") as socket, self.assertRaises(OSError):
            cede.Socket("127.0.0.1:%d" % socket.address[1])
        with self.assertRaises(ValueError):
            socket.accept()

    def test_addresses_are_text_or_pairs(self):
        with cede.Socket(("127.0.0.1", 0)) as socket, cede.connect(socket.address, timeout_s=LONG_S) as near:
            far = socket.accept(timeout_s=LONG_S)
            self.addCleanup(far.abort)
            self.assertEqual(near.peer, socket.address)
        with self.assertRaises(ConnectionRefusedError):
            cede.connect(("::1", 9), timeout_s=LONG_S)
        for wrong in [9, ("127.0.0.1",), None]:
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, "HOST, PORT"):
                cede.connect(wrong)
        with self.assertRaisesRegex(TypeError, "set is a mapping"):
            cede.connect("127.0.0.1:9", set=["target"])

    def test_choices_mean_something(self):
        for choice in [{"controller": "nobody"}, {"set": {"nothing": 1}}, {"controller": "reno", "set": {"increase": "much"}}]:
            with self.subTest(choice=choice), self.assertRaises(ValueError):
                cede.Socket("127.0.0.1:0", **choice)
        with self.assertRaises(ValueError):
            cede.connect("127.0.0.1:9", timeout_s=-1)


if __name__ == "__main__":
    unittest.main()

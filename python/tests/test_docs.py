"""What the documentation shows runs."""

import os
import re
import unittest
from pathlib import Path

import cede


class Documentation(unittest.TestCase):
    def test_runs_controllers_and_sockets_are_as_shown(self):
        text = (Path(os.environ["CEDE_WORKSPACE"]) / "docs/python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
        # The last one reads captures of somebody's.
        self.assertEqual([("cede.meter" in block) for block in blocks], [False, False, False, True])
        names = {}
        for block in blocks[:-1]:
            exec(compile(block, "docs/python.md", "exec"), names)
        self.assertIsInstance(names["result"], cede.Result)
        self.assertEqual(names["content"], b"whatever nobody else wants" * 10_000)


if __name__ == "__main__":
    unittest.main()

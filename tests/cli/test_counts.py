"""docs/counts.md: one command a row, and what it counts."""
import pathlib
import re
import shlex
import unittest

from harness import CliTest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "counts.md"
ROW = re.compile(r"^\| ([^|]+) \| `opfuse ([^`]+)` \| (\d+) \| (\d+) \| (\d+) \|")


class Counts(CliTest):
    def test_every_row_is_what_its_command_counts(self):
        rows = [m for m in map(ROW.match, PAGE.read_text().splitlines()) if m]
        self.assertGreaterEqual(len(rows), 10)
        for row in rows:
            with self.subTest(row[1]):
                out = self.ok(*shlex.split(row[2]), "--dry-run", "--json").json
                self.assertEqual((out["module_total"], out["qdq"]["declared"], out["qdq"]["tensor_count"]),
                                 (int(row[3]), int(row[4]), int(row[5])))


if __name__ == "__main__":
    unittest.main()

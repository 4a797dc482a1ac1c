"""What came out: a CSV of every figure, and a table of ratios."""

import csv
import statistics


class Results:
    """Figures by row, target and round."""

    def __init__(self, path):
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file)
        self.writer.writerow(["round", "target", "row", "value", "unit"])
        self.rows = {}

    def add(self, number, target, row, value, unit):
        self.writer.writerow([number, target, row, "%.4g" % value, unit])
        self.file.flush()
        self.rows.setdefault(row, (unit, {}))[1].setdefault(target, {})[number] = value

    def ratio(self, row, ours, other):
        """Median over the rounds of ours by the other's of the same round; None where one is missing."""
        figures = self.rows[row][1]
        pairs = [value / figures[other][number] for number, value in figures.get(ours, {}).items()
                 if number in figures.get(other, {})]
        return statistics.median(pairs) if pairs else None

    def table(self, ours, others):
        """Markdown: our median, and how many times each other's it is."""
        present = [o for o in others if any(o in figures for _, figures in self.rows.values())]
        lines = ["| | %s | %s |" % (ours, " | ".join("x " + o for o in present)),
                 "| --- |%s" % (" --- |" * (len(present) + 1))]
        for row, (unit, figures) in self.rows.items():
            if ours not in figures:
                continue
            cells = ["%s %s" % (rounded(statistics.median(figures[ours].values())), unit)]
            for other in present:
                ratio = self.ratio(row, ours, other)
                cells.append("" if ratio is None else "%.2f" % ratio)
            lines.append("| %s | %s |" % (row, " | ".join(cells)))
        return "\n".join(lines)


def rounded(value):
    return "%.0f" % value if value >= 100 else "%.3g" % value

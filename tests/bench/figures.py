#!/usr/bin/env python3
"""The figures of the filters' benchmark as CSV, and two plots of them.

figures.py FIGURES FOLDER: FIGURES is the file that filter_bench --json wrote. Prints the CSV, and writes it to
FOLDER/filter.csv, with FOLDER/ns.svg and FOLDER/bits.svg: time and memory against ids, for each target.
"""
import csv
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"axes.grid": True, "grid.alpha": 0.3, "legend.fontsize": 8, "svg.hashsalt": "lethe",
                            "svg.fonttype": "none", "font.family": "sans-serif"})
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import ticker

# Okabe and Ito's colours, which most people can tell apart.
STYLES = {
    "compact": ("#D55E00", "P"), "fixed table": ("#E69F00", "h"), "two lines": ("#999999", "."),
    "split-block": ("#009E73", "D"), "cuckoo": ("#56B4E9", "s"), "apbf": ("#CC79A7", "v"),
    "published": ("#0072B2", "o"), "exact-engine": ("#AA7744", "X"), "exact": ("#000000", "^"),
    "RocksDB": ("#444444", "*"),
}
# What remembers nothing, misses the target, or would take the place of all others is not in the plot of memory.
NOT_IN_BITS = ("two lines", "published", "RocksDB")
FEWEST_FALSE_HITS = 10  # with fewer the rate is the model's


def text(value):
    return f"{value:.3g}"


def table(figures):
    rows = []
    for each in sorted(figures, key=lambda f: (f["window"], -f["target_fpp"])):
        measured = each["false_hits"] >= FEWEST_FALSE_HITS
        rows.append({
            "ids": text(each["window"]).replace("e+0", "e"), "target": each["target_fpp"], "layout": each["layout"],
            "generations": each["generations"], "bits per id": text(each["bits_per_id"]),
            "bits per id at most": text(each["most_bits_per_id"]),
            "memory after a fall": text(each["fallen_share"]),
            "FPP": text(each["fpp"] if measured else each["fpp_modelled"]),
            "FPP is": "measured" if measured else "model",
            "ns per id batched": text(each["ns_batch"]), "ns from nothing": text(each["ns_from_nothing"]),
            "ns falling": text(each["ns_falling"]), "ns single": text(each["ns_single"]),
            "slowest call us": text(each["slowest_us"]),
        })
    return rows


def draw(figures, field, growing, y_label, path):
    """A plot a target. Of compact also the field `growing`, dotted, where it differs."""
    targets = sorted({f["target_fpp"] for f in figures}, reverse=True)
    figure, plots = plt.subplots(1, len(targets), figsize=(3.8 * len(targets), 4), sharex=True, sharey=True, squeeze=False)
    handles = {}
    for axes, target in zip(plots[0], targets):
        for layout, (color, marker) in STYLES.items():
            rows = sorted((f for f in figures if f["layout"] == layout and f["target_fpp"] == target),
                          key=lambda f: f["window"])
            if not rows:
                continue
            style = {"color": color, "marker": marker, "linewidth": 2.5 if layout == "compact" else 1.2}
            ids = [f["window"] for f in rows]
            handles[layout], = axes.plot(ids, [f[field] for f in rows], **style)
            if layout == "compact":
                handles["compact, growing"], = axes.plot(ids, [f[growing] for f in rows], linestyle=":", **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("ids in a horizon")
        axes.set_title(f"target {target:g}")
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which(ticker.FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(ticker.LogLocator(subs=(2, 3, 5)))
    plots[0][0].set_ylabel(y_label)
    figure.tight_layout()
    figure.legend(handles.values(), handles.keys(), loc="upper center", bbox_to_anchor=(0.5, 0), ncol=6)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    figures = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = pathlib.Path(sys.argv[2])
    rows = table(figures)
    with open(folder / "filter.csv", "w", encoding="utf-8", newline="") as file:
        for out in (sys.stdout, file):
            writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    draw(figures, "ns_batch", "ns_from_nothing", "ns per id, batched", folder / "ns.svg")
    figures = [f for f in figures if f["layout"] not in NOT_IN_BITS]
    draw(figures, "bits_per_id", "most_bits_per_id", "bits per id", folder / "bits.svg")


if __name__ == "__main__":
    main()

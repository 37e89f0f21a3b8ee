#!/usr/bin/env python3
"""Draws Figures 14 and 15 from what `make lab-counters` has measured, and puts their tables into the page.

figures.py FOLDER PAGE: reads the CSV files of measured/, writes the plots to FOLDER as SVG and PNG, and puts the PNG
files and the tables into the folder PAGE.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from page import MEASURED_BLOCKS, cost_percent, counter_error, milliseconds  # noqa: E402
from plots import COLORS, Lab, plt, write_page  # noqa: E402

WITHOUT, WITH = COLORS["compact"], COLORS["published"]


def fig14(lab):
    ends = lab["fig14_ends"].rows
    figure, axes = plt.subplots(2, len(ends), figsize=(13, 6.4), height_ratios=(3, 2), sharex="col", squeeze=False)
    for (values, errors), end in zip(axes.T, ends):
        rows = lab["fig14"].where(store=end["store"])
        seconds = [r["second"] for r in rows]
        for axis in (values, errors):
            axis.axvspan(end["killed"], end["back"], color="#999999", alpha=0.25, linewidth=0,
                         label="a node is killed, and comes back")
        for name, color, label in (("without", WITHOUT, "without lethe"), ("with", WITH, "with lethe")):
            style = {"color": color, "label": f"{label}: error {counter_error(end, name)}"}
            values.plot(seconds, [r[name] for r in rows], **style)
            errors.plot(seconds, [r[name] - r["expected"] for r in rows], **style)
        values.plot(seconds, [r["expected"] for r in rows], color="black", linestyle="--", label="expected")
        errors.axhline(0, color="black", linestyle="--", linewidth=1)
        # Where a line is broken, the store did not answer. How far clients are behind when it does again is of no
        # interest.
        errors.set_ylim(-0.6 * (end["without"] - end["expected"]), 1.25 * (end["without"] - end["expected"]))
        values.set_title(end["label"])
        values.legend(loc="lower right", fontsize=7)
        errors.set_xlabel("time (s)")
    axes[0, 0].set_ylabel("sum of the counters")
    axes[1, 0].set_ylabel("more than expected")
    figure.suptitle("Fig. 14: counters of clients that lose 6 % of the acknowledgements and send again")
    lab.save(figure, "fig14", "fig14")


def fig15(lab):
    costs = lab["fig15_costs"].rows
    figure, axes = plt.subplots(1, len(costs), figsize=(13, 4.2), squeeze=False)
    for axis, cost in zip(axes[0], costs):
        rows = lab["fig15"].where(store=cost["store"])
        for name, color, style in (("without", WITHOUT, "-"), ("with", WITH, "--")):
            axis.plot([r[f"{name}_us"] / 1000 for r in rows], [r["percentile"] for r in rows], color=color,
                      linestyle=style, label=f"{name}: p50 {milliseconds(cost[f'p50_{name}_us'])},\n"
                                             f"p99 {milliseconds(cost[f'p99_{name}_us'])}")
        axis.set_title(f"{cost['store']}\nthe filter takes {cost_percent(cost)} of p50", fontsize=9)
        axis.set_xlabel("latency of a batch (ms)")
        axis.set_xlim(0, 1.4 * max(cost["p99_without_us"], cost["p99_with_us"]) / 1000)
        axis.set_ylim(0, 165)
        axis.set_yticks([0, 25, 50, 75, 99])
        axis.legend(loc="upper left", fontsize=6.5)
    axes[0, 0].set_ylabel("batches that are faster (%)")
    figure.suptitle("Fig. 15: batches of 50 updates, with the filter and without")
    lab.save(figure, "fig15", "fig15")


def main():
    folder, page = sys.argv[1:]
    lab = Lab(folder)
    fig14(lab)
    fig15(lab)
    write_page(lab, page, MEASURED_BLOCKS)
    print(f"{len(lab.drawn)} plots are in {folder}, as SVG and PNG")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Draws the lab's tables and puts their figures into the page.

plots.py TABLES [PAGE]: draws the CSV files of the folder TABLES, and writes the plots there as SVG and PNG. With
PAGE, a folder, also puts the PNG files and what the page states there.
"""
import io
import pathlib
import shutil
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({
    "font.size": 10, "axes.titlesize": 11, "axes.grid": True, "grid.alpha": 0.3, "legend.fontsize": 8,
    "lines.markersize": 4, "lines.linewidth": 1.5, "axes.axisbelow": True, "svg.hashsalt": "lethe",
})
import matplotlib.pyplot as plt  # noqa: E402
from PIL import Image  # noqa: E402

from page import BLOCKS, MEASURED, PICTURES, picture_digest, pictures, read, rewritten  # noqa: E402

# Okabe and Ito's colours, which most people can tell apart.
COLORS = {
    "published": "#0072B2", "corrected": "#009E73", "compact": "#D55E00",
    "simple check": "#999999", "printed": "#CC79A7", "exact": "#000000",
}
# Those that stand for no filter of their own.
CYCLE = ["#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#000000", "#999999", "#B8A000", "#7A4FBF", "#8C564B"]
MARKERS = "osDv^P*X<"


class Lab:
    """The tables of one run and those that were measured, and the plots that are made of them."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.tables = {**read(folder), **read(MEASURED)}
        self.drawn = []

    def __getitem__(self, name):
        return self.tables[name]

    def save(self, figure, name, *tables):
        """The parameters stand under the plot, as many characters a line as fit."""
        text = "\n".join(dict.fromkeys(self[t].parameters for t in tables))
        width = int(figure.get_size_inches()[0] * 17)
        lines = [part for line in text.split("\n") for part in wrap(line, width)]
        height = figure.get_size_inches()[1]
        figure.set_size_inches(figure.get_size_inches()[0], height + 0.15 * len(lines))
        bottom = 0.15 * len(lines) / figure.get_size_inches()[1]
        figure.tight_layout(rect=(0, bottom + 0.005, 1, 1))
        figure.text(0.01, 0.005, "\n".join(lines), fontsize=7, color="#444444", va="bottom")
        check_legends(figure, name)
        figure.savefig(self.folder / f"{name}.svg", metadata={"Date": None})
        pixels = io.BytesIO()
        figure.savefig(pixels, dpi=90, format="png")
        # 128 colours are less than half of the bytes.
        path = self.folder / f"{name}.png"
        Image.open(pixels).convert("RGB").quantize(128).save(path, optimize=True)
        pictures.write(path, picture_digest(self, name))
        plt.close(figure)
        self.drawn.append(name)


def wrap(text, width):
    lines, line = [], ""
    for part in text.split("; "):
        if line and len(line) + len(part) > width:
            lines.append(line)
            line = ""
        line += ("; " if line else "") + part
    return lines + [line]


def check_legends(figure, name):
    """No legend covers a curve, but for what goes from end to end, such as a target."""
    figure.canvas.draw()
    for axes in figure.axes:
        if axes.get_legend() is None:
            continue
        box = axes.get_legend().get_frame().get_window_extent()
        for line in axes.get_lines():
            if line.get_transform() != axes.transData:
                continue
            path = line.get_path().transformed(line.get_transform())
            is_joined = line.get_linestyle() != "None" and len(path) > 1
            assert not (is_joined and path.intersects_bbox(box, filled=False) or
                        any(box.contains(x, y) for x, y in path.vertices)), \
                f"{name}: the legend of \"{axes.get_title()}\" covers {line}"


def legend_below(axes, columns):
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=columns)


FLOOR = 1e-7


def band(axes, rows, x, label, color, marker="o", with_band=True, **style):
    """Means with their intervals; where nothing was counted, an arrow down from the upper bound."""
    seen = [r for r in rows if r["fpp"] > 0]
    none = [r for r in rows if r["fpp"] <= 0]
    axes.plot([r[x] for r in seen], [r["fpp"] for r in seen], marker=marker, color=color, label=label, **style)
    if with_band:
        axes.fill_between([r[x] for r in seen], [max(r["low"], FLOOR) for r in seen], [r["high"] for r in seen],
                          color=color, alpha=0.15, linewidth=0)
    if none and marker != ".":
        axes.plot([r[x] for r in none], [r["high"] for r in none], linestyle="none", marker=r"$\downarrow$",
                  markersize=8, color=color, label=None if seen else f"{label}: none seen, 99 % bound")


def compact_curves(axes, table, horizon=10):
    """Hollow marks where the window is under the horizon."""
    for name, color, line in (("compact", COLORS["compact"], "-"), ("compact, enough memory", "#F0A070", "--")):
        rows = table.where(filter=name)
        kib = max(r["bytes"] for r in rows) / 1024
        short = [r for r in rows if r["limit_hits"] > 0 and r["window_s"] < horizon]
        label = f"{name}: horizon {horizon} s, up to {kib:.1f} KiB"
        band(axes, rows, "x", label, color, "P", linestyle=line)
        if short:
            axes.plot([r["x"] for r in short], [r["fpp"] if r["fpp"] > 0 else r["high"] for r in short], linestyle="none",
                      marker="o", markersize=7, markerfacecolor="white", color=color,
                      label=f"the same, window {min(r['window_s'] for r in short):.1f} s or more")


def fpp_axes(axes, x_label, title):
    axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel("false-positive probability (FPP)")
    axes.set_title(title)


def fig08(lab):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 2))
    table = lab["fig08_09"]
    for i, name in enumerate(["simple check", "published", "corrected"]):
        label = {"published": "published (optimized check)"}.get(name, name)
        rows = table.where(filter=name)
        band(left, rows, "x", f"{label}: holds {rows[0]['window_s']:.0f} s, {rows[0]['bytes'] / 1024:.1f} KiB", COLORS[name],
             MARKERS[i])
    compact_curves(left, table)
    fpp_axes(left, "elements inserted", "Fig. 8: optimized check against the simple one")
    left.legend()
    spread = lab["fig08_spread"].rows
    bars = right.bar([f"{r['periods']:.0f}" for r in spread], [100 * r["lower_by"] for r in spread],
                     color=COLORS["published"], width=0.6)
    right.bar_label(bars, fmt="%.0f %%")
    right.axhline(90, color=COLORS["printed"], linestyle="--", label="the paper's 90 %")
    right.set_ylim(0, 105)
    right.set_xlabel("refresh periods in which the 300 elements come")
    right.set_ylabel("FPP lower by (%)")
    right.set_title("What the optimized check gains")
    right.legend()
    lab.save(figure, "fig08", "fig08_09")


def model_plot(lab, table, axes, x_label, title):
    for i, name in enumerate(["published", "corrected"]):
        band(axes, table.where(filter=name), "x", f"{name}, measured", COLORS[name], MARKERS[i], linestyle="none")
    compact_curves(axes, table)
    rows = table.where(filter="published")
    axes.plot([r["x"] for r in rows], [r["equation_3"] for r in rows], color="black", linestyle="--",
              label="Equation 3")
    axes.plot([r["x"] for r in rows], [r["shared_model"] for r in rows], color="black", linestyle=":",
              label="model with shared intervals")
    fpp_axes(axes, x_label, title)
    axes.axhline(1e-4, color=COLORS["compact"], linewidth=0.8, linestyle="-.", label="target of compact")
    legend_below(axes, 2)


def fig09(lab):
    figure, axes = plt.subplots(figsize=(8, 5.4))
    model_plot(lab, lab["fig08_09"], axes, "elements inserted", "Fig. 9: the analysis against what is measured")
    lab.save(figure, "fig09", "fig08_09")


def fig10(lab):
    figure, axes = plt.subplots(figsize=(8, 5.4))
    model_plot(lab, lab["fig10"], axes, "m: bits of each generation", "Fig. 10: 300 elements, filters of several sizes")
    rare = lab["fig10"].where(filter="published, by importance")
    axes.errorbar([r["x"] for r in rare], [r["fpp"] for r in rare],
                  [[r["fpp"] - r["low"] for r in rare], [r["high"] - r["fpp"] for r in rare]], fmt="x", capsize=3,
                  color=COLORS["published"], label="published, by importance sampling")
    legend_below(axes, 2)
    lab.save(figure, "fig10", "fig10")


def fig11(lab):
    table = lab["fig11"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.6), sharey=True)
    for i, period in enumerate([5, 3, 2, 1]):
        rows = table.where(filter=f"published, t = {period} s")
        band(left, rows, "x", f"t = {period} s: holds {rows[0]['window_s']:.0f} s", CYCLE[i], MARKERS[i],
             linestyle="none")
        left.plot([r["x"] for r in rows], [r["shared_model"] for r in rows], color=CYCLE[i], linewidth=1)
    fpp_axes(left, "operations per second", "Fig. 11: N = 1; points measured, lines modelled")
    left.set_ylim(1e-9, 1e-1)
    legend_below(left, 2)
    series = [("published, t = 5 s", "published, N = 1, t = 5 s", CYCLE[0]),
              ("published, N = 4, t = 2 s", None, CYCLE[1]), ("corrected, N = 4, t = 2 s", None, CYCLE[2]),
              ("published, N = 9, t = 1 s", None, CYCLE[5]), ("corrected, N = 9, t = 1 s", None, CYCLE[4])]
    for i, (name, label, color) in enumerate(series):
        rows = table.where(filter=name)
        kib = max(r["bytes"] for r in rows) / 1024
        band(right, rows, "x", f"{label or name}: {kib:.0f} KiB", color, MARKERS[i], False, linestyle="none")
        # Equation 3 holds for the corrected filter, whose neighbours are independent.
        model = "equation_3" if name.startswith("corrected") else "shared_model"
        if rows[0][model] > 0:
            right.plot([r["x"] for r in rows], [r[model] for r in rows], color=color, linewidth=1)
    compact_curves(right, table)
    fpp_axes(right, "operations per second", "The same knob with the window held at 10 s")
    right.set_ylabel("")
    legend_below(right, 1)
    lab.save(figure, "fig11", "fig11")


def fig12(lab):
    table = lab["fig12"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for i, count in enumerate([3, 6, 12, 24]):
        rows = table.where(filter=f"{count} filters")
        band(left, rows, "x", f"{count} filters: hold {rows[0]['window_s']:.0f} s, {rows[0]['bytes'] / 1024:.1f} KiB",
             CYCLE[i], MARKERS[i], linestyle=["-", "-", "--", ":"][i])
    compact_curves(left, table)
    fpp_axes(left, "operations per second", "Fig. 12: means over the phases of a period")
    left.legend()
    for i, count in enumerate([3, 24]):
        for moment, style in (("after a refresh", "-"), ("before a refresh", "--")):
            band(right, table.where(filter=f"{count} filters, {moment}"), "x", f"{count} filters, {moment}",
                 CYCLE[3 * i], MARKERS[i], linestyle=style)
    band(right, table.where(filter="24 filters, corrected"), "x", "24 filters, corrected, mean", COLORS["corrected"], "D",
         with_band=False)
    fpp_axes(right, "operations per second", "The phase of the period decides")
    right.set_ylabel("")
    right.legend()
    lab.save(figure, "fig12", "fig12")


def fig13(lab):
    table = lab["fig13"]
    names = ["printed", "corrected", "compact"]
    target = 0.01
    horizon = 22
    figure, axes = plt.subplots(4, 3, figsize=(11, 9), sharex=True, sharey="row")
    titles = ["Algorithm 3 as printed", "corrected", "compact (default)"]
    for column, name in enumerate(names):
        rows = table.where(filter=name)
        seconds = [r["second"] for r in rows]
        load, fpp, shape, window = axes[:, column]
        load.fill_between(seconds, [r["rate"] for r in rows], color="#BBBBBB")
        load.set_title(titles[column])
        band(fpp, rows, "second", "measured", COLORS[name], marker=".")
        fpp.plot(seconds, [max(r["believed"], FLOOR) for r in rows], color="black", linewidth=1, linestyle="--",
                 label="Equation 3" if name == "printed" else "estimated by the filter")
        fpp.axhline(target, color="red", linewidth=1, label="target")
        fpp.set_yscale("log")
        fpp.set_ylim(1e-10, 0.2)
        fpp.legend(loc="lower right", fontsize=7)
        shape.step(seconds, [r["filters"] for r in rows], where="post", color=COLORS[name], label="filters (N + 2)")
        shape.step(seconds, [r["period_s"] for r in rows], where="post", color="#555555", linestyle=":",
                   label="refresh period t (s)")
        shape.set_yscale("log")
        shape.set_ylim(0.5, 900)
        shape.legend(loc="upper left", fontsize=7)
        window.plot(seconds, [r["window_s"] for r in rows], color=COLORS[name])
        window.axhline(horizon, color="red", linewidth=1, label="horizon")
        for i, row in enumerate([r for r in rows if r["missed"] > 0]):
            window.axvspan(row["second"] - 0.5, row["second"] + 0.5, color="red", alpha=0.3, linewidth=0,
                           label=None if i else "duplicates pass")
        window.set_ylim(0, 70)
        window.set_xlabel("time (s)")
        window.legend(loc="upper left", fontsize=7)
    for row, label in enumerate(["load (elements/s)", "FPP", "filters; t (s)", "window (s)"]):
        axes[row, 0].set_ylabel(label)
    figure.suptitle("Fig. 13: adaptation under a load that rises and subsides")
    lab.save(figure, "fig13", "fig13")


def fig13_searched(lab):
    rows = lab["fig13_searched"].rows
    seconds = [r["second"] for r in rows]
    figure, (load, fpp, shape) = plt.subplots(1, 3, figsize=(13, 4))
    load.fill_between(seconds, [r["rate"] for r in rows], color="#BBBBBB")
    load.set_ylabel("load (elements/s)")
    load.set_title("A load that was searched for")
    band(fpp, rows, "second", "measured", COLORS["printed"], marker=".")
    fpp.plot(seconds, [r["believed"] for r in rows], color="black", linewidth=1, linestyle="--", label="Equation 3")
    fpp.axhline(0.01, color="red", linewidth=1, label="target")
    fpp.set_ylabel("FPP")
    fpp.set_title("The filter believes that it keeps its target")
    for i, row in enumerate([r for r in rows if r["missed"] > 0]):
        fpp.axvspan(row["second"] - 0.5, row["second"] + 0.5, color="red", alpha=0.3, linewidth=0,
                    label=None if i else "duplicates pass")
    fpp.legend()
    shape.step(seconds, [r["filters"] for r in rows], where="post", color=COLORS["printed"], label="filters (N + 2)")
    shape.step(seconds, [r["period_s"] for r in rows], where="post", color="#555555", linestyle=":",
               label="refresh period t (s)")
    for second in (16, 19, 28):
        shape.axvline(second, color="#0072B2", linewidth=0.8, linestyle="--", label="the paper's steps" if second == 16 else None)
    shape.set_title("Algorithm 3 as printed")
    shape.legend()
    for axis in (load, fpp, shape):
        axis.set_xlabel("time (s)")
    lab.save(figure, "fig13_searched", "fig13_searched", "fig13_load")


def errata(lab):
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.5))
    rows = lab["erratum1"].rows
    one = axes[0, 0]
    ids = [r["ids"] for r in rows]
    band(one, rows, "ids", "measured", "black", linestyle="none")
    one.plot(ids, [r["printed"] for r in rows], color=COLORS["printed"], marker="x", label="middle form, as printed")
    one.plot(ids, [r["meant"] for r in rows], color=COLORS["corrected"], label="middle form, as meant")
    one.plot(ids, [r["approximation"] for r in rows], color=COLORS["published"], linestyle=":", label="approximation")
    fpp_axes(one, "elements in the Bloom filter", "1. Equation 1")
    one.legend()
    rows = lab["erratum2"].rows
    two = axes[0, 1]
    width = 0.4
    two.bar([r["age"] - width / 2 for r in rows], [100 * r["printed"] for r in rows], width, color=COLORS["printed"],
            label="pseudocode")
    two.bar([r["age"] + width / 2 for r in rows], [100 * r["text"] for r in rows], width, color=COLORS["corrected"],
            label="text")
    two.set_title("2. Algorithm 2: an interval is forgotten early")
    two.set_xlabel("age (refresh periods)")
    two.set_ylabel("ids found (%)")
    two.set_ylim(0, 150)
    two.legend(loc="upper right")
    rows = lab["erratum3"].rows
    three = axes[0, 2]
    past = [r["past"] for r in rows]
    band(three, rows, "past", "measured", COLORS["published"])
    three.plot(past, [r["equation_3"] for r in rows], color="black", linestyle="--", label="Equation 3")
    three.plot(past, [r["shared_model"] for r in rows], color="black", linestyle=":", label="model with shared intervals")
    three.plot(past, [r["alternating"] for r in rows], color=COLORS["corrected"], marker="s",
               label="measured, alternating mappings")
    three.set_ylim(0, 0.01)
    three.set_xlabel("N: past filters")
    three.set_ylabel("FPP")
    three.set_title("3. Neighbours are not independent")
    three.legend()
    rows = lab["erratum4"].rows
    four = axes[1, 0]
    width = 0.27
    for i, (column, color, label) in enumerate([("before", "#999999", "three filters"),
                                                ("appended", COLORS["printed"], "six, empty ones appended"),
                                                ("kept", COLORS["corrected"], "six, by not dropping")]):
        four.bar([r["age"] + (i - 1) * width for r in rows], [100 * r[column] for r in rows], width, color=color,
                 label=label)
    four.set_title("4. Growing hides what the oldest holds alone")
    four.set_xlabel("age (refresh periods)")
    four.set_ylabel("ids found (%)")
    four.set_ylim(0, 150)
    four.legend(loc="upper right")
    rows = lab["erratum5"].rows
    five = axes[1, 1]
    past = [r["past"] for r in rows]
    five.plot(past, [r["same_period"] for r in rows], marker="o", color=COLORS["printed"], label="t = 5 s: the window grows")
    held = [r for r in rows if r["window_held"] > 0]
    five.plot([r["past"] for r in held], [r["window_held"] for r in held], marker="s", color=COLORS["corrected"],
              label="(N + 1) t = 10 s: the window stays")
    fpp_axes(five, "N: past filters", "5. More filters, steady load")
    five.legend(loc="center right")
    rows = lab["erratum6"].rows
    six = axes[1, 2]
    seconds = [r["second"] for r in rows]
    six.step(seconds, [r["window_s"] for r in rows], where="post", color=COLORS["printed"], label="window, measured")
    six.step(seconds, [r["promised_s"] for r in rows], where="post", color="#999999", linestyle=":", label="(N + 1) t")
    six.axhline(20, color="red", linewidth=1, label="horizon")
    six.set_ylim(0, 40)
    six.set_xlabel("time since the first step down (s)")
    six.set_ylabel("window (s)")
    six.set_title("6. Steps down shrink the window")
    six.legend(loc="lower right")
    figure.tight_layout()
    for axis, name in zip(axes.flat, ["erratum1", "erratum2", "erratum3", "erratum4", "erratum5", "erratum6"]):
        axis.annotate("\n".join(wrap(lab[name].parameters, 75)), (0, -0.22), xycoords="axes fraction", fontsize=6,
                      color="#444444", va="top")
    lab.save(figure, "errata")


def slides(lab):
    table = lab["slides"]
    figure, (memory, fpp, error) = plt.subplots(1, 3, figsize=(13, 4.6))
    styles = {"no retries": ("#999999", "--"), "no filter": ("#999999", "-"), "exact list": (COLORS["exact"], "-"), "bloom": ("#CC79A7", "-"),
              "recycled": ("#56B4E9", "-"), "published": (COLORS["published"], "-"),
              "compact": (COLORS["compact"], "-")}
    for name, (color, style) in styles.items():
        rows = table.where(filter=name)
        seconds = [r["second"] for r in rows]
        if name not in ("no retries", "no filter"):
            memory.plot(seconds, [r["bytes"] / 1024 for r in rows], color=color, linestyle=style, label=name)
            seen = [r for r in rows if r["fpp"] > 0]
            fpp.plot([r["second"] for r in seen], [r["fpp"] for r in seen], color=color, linestyle=style,
                     label=name if seen else f"{name}: none in 200,000")
        error.plot(seconds, [100 * (r["counter"] / r["truth"] - 1) for r in rows], color=color, linestyle=style,
                   label=name)
    memory.set_yscale("log")
    memory.set_ylabel("memory (KiB)")
    memory.set_title("Memory")
    fpp.set_yscale("log")
    fpp.set_ylabel("false-positive probability (FPP)")
    fpp.axhline(1e-3, color="red", linewidth=1, label="target")
    fpp.set_title("False positives")
    error.set_yscale("symlog", linthresh=0.1)
    error.set_ylabel("counter above the truth (%)")
    error.set_title("Error of the counter")
    for axis in (memory, fpp, error):
        axis.set_xlabel("time (s)")
        legend_below(axis, 2)
    lab.save(figure, "slides", "slides")


def opposite(lab):
    figure, left = plt.subplots(figsize=(9.5, 4.6))
    table = lab["opposite"]
    # All are in the same places, so the markers are nested.
    for i, (slots, threads) in enumerate([(2048, 1), (131_072, 1), (16_384, 1), (16_384, 2), (16_384, 4)]):
        rows = (lab["opposite"] if threads == 1 else lab["opposite_threads"]).where(copied=1.0, slots=slots, threads=threads)
        left.plot([r["load"] for r in rows], [r["missed_share"] for r in rows], linestyle="none", marker=MARKERS[i],
                  markersize=3 + 3 * i, markerfacecolor="none", color=CYCLE[i],
                  label=f"{slots:,} slots, {threads} thread{'s' if threads > 1 else ''}")
    few = table.where(copied=0.05)
    left.plot([r["load"] for r in few], [r["missed_share"] for r in few], linestyle="none", marker="x",
              color=CYCLE[6], label="16,384 slots, one id in 20 is sent again")
    for share, style in ((1.0, "-"), (0.05, ":")):
        rows = table.where(copied=share, slots=16_384, threads=1)
        left.plot([r["load"] for r in rows], [r["model"] for r in rows], color="black", linewidth=0.8,
                  linestyle=style, label=f"1 - exp(-{1 + share:g} load)")
    for name, color in (("cache", CYCLE[7]), ("cache in the same memory", CYCLE[8])):
        rows = lab["expiring"].where(filter=name)
        left.plot([r["load"] for r in rows], [r["missed_share"] for r in rows], color=color, linestyle="--", linewidth=1,
                  label=f"expiring {name.replace('cache', 'cache (Guava)')}" + ("" if " " in name else " of 131,072 ids"))
    left.set_xscale("log")
    left.set_xlabel("load: new ids between two sendings, for each slot")
    left.set_ylabel("copies missed (share)")
    left.set_title("Misses of the opposite of a Bloom filter; false positives: "
                   f"{sum(r['false_positives'] for t in ('opposite', 'opposite_threads') for r in lab[t].rows):.0f}", fontsize=10)
    left.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    lab.save(figure, "opposite", "opposite", "expiring")


MAPPINGS = {"shared": ("one mapping for all (standard Bloom filter)", COLORS["printed"], "o"),
            "pair": ("one for each pair (DBF, as in the experiments)", COLORS["published"], "s"),
            "pair and round": ("one for each pair and round (DBF with section 2.3)", COLORS["corrected"], "^")}


def dbf(lab):
    table = lab["dbf"]
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4))
    for experiment, axis in zip((1, 2), axes):
        for mapping, (label, color, marker) in MAPPINGS.items():
            rows = table.where(experiment=experiment, mapping=mapping)
            iterations = sorted({r["iteration"] for r in rows})
            by = [[r["converged"] for r in rows if r["iteration"] == i] for i in iterations]
            axis.plot(iterations, [sum(c) / len(c) for c in by], color=color, marker=marker, label=label,
                      linestyle="--" if mapping == "pair and round" else "-", markerfacecolor="none",
                      markersize=9 if mapping == "pair and round" else 5)
            axis.fill_between(iterations, [min(c) for c in by], [max(c) for c in by], color=color, alpha=0.2)
        axis.set_xlabel("iteration")
        axis.set_ylabel("nodes that have all elements (of 50)")
        axis.set_title(f"Experiment {experiment}: " + ("m for all elements" if experiment == 1 else
                                                       "m for the larger set of two"))
    axes[0].legend(loc="center right", fontsize=7)
    costs = lab["reconcile_costs"]
    for i, method in enumerate(costs.values("method")):
        rows = costs.where(method=method)
        axes[2].plot([r["difference"] for r in rows], [r["bytes"] / 1024 for r in rows], marker=MARKERS[i],
                     color=CYCLE[i], label=method, linestyle="--" if i == 2 else "-")
    axes[2].axhline(costs.rows[0]["all_ids_bytes"] / 1024, color="black", linewidth=1, label="all ids of one side")
    axes[2].set_xscale("log")
    axes[2].set_yscale("log")
    axes[2].set_xlabel("keys that only one side has")
    axes[2].set_ylabel("sent and received (KiB)")
    axes[2].set_title("What one exchange costs")
    axes[2].legend(fontsize=7)
    lab.save(figure, "dbf", "dbf", "reconcile_costs")


def dbf_large(lab):
    table = lab["dbf_large"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4))
    for mapping, (label, color, marker) in MAPPINGS.items():
        rows = table.where(mapping=mapping)
        left.plot([r["iteration"] for r in rows], [r["converged"] for r in rows], color=color, marker=marker, label=label)
        right.plot([r["iteration"] for r in rows], [(r["filter_bytes"] + r["element_bytes"]) / 2**30 for r in rows],
                   color=color, marker=marker, label=f"filters and elements, {mapping}")
    rows = table.where(mapping="pair and round")
    right.plot([r["iteration"] for r in rows], [r["all_ids_bytes"] / 2**30 for r in rows], color="black",
               linestyle="--", label="all ids in each message")
    right.plot([r["iteration"] for r in rows], [r["table_bytes"] / 2**30 for r in rows], color="#999999",
               linestyle="--", label="a lookup table for each difference")
    left.set_xlabel("iteration")
    left.set_ylabel("nodes that have all elements (of 500)")
    left.set_title("500 nodes, 100,000 elements (experiment 1)")
    left.legend(fontsize=7)
    right.set_xlabel("iteration")
    right.set_ylabel("sent by all nodes so far (GiB)")
    right.set_yscale("log")
    right.set_title("Bytes, until all nodes have all elements")
    right.legend(fontsize=7)
    lab.save(figure, "dbf_large", "dbf_large")


def robustness(lab):
    table = lab["robustness"]
    engines, scenarios = table.values("engine"), table.values("scenario")
    figure, axes = plt.subplots(1, 2, figsize=(13, 5))
    for axis, column, title, floor in ((axes[0], "fpp", "FPP (target 0.001)", 1e-6),
                                       (axes[1], "missed_share", "ids of the window that are missed", 1e-6)):
        values = [[table.one(engine=e, scenario=s)[column] for s in scenarios] for e in engines]
        image = axis.imshow([[max(v, floor) for v in row] for row in values], aspect="auto", cmap="YlOrRd",
                            norm=matplotlib.colors.LogNorm(floor, 1))
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                axis.text(x, y, "0" if value == 0 else f"{value:.1g}" if value < 0.01 else f"{100 * value:.0f} %",
                          ha="center", va="center", fontsize=8, color="black" if value < 0.1 else "white")
        axis.set_xticks(range(len(scenarios)), scenarios, rotation=25, ha="right", fontsize=8)
        axis.set_yticks(range(len(engines)), engines)
        axis.set_title(title)
        axis.grid(False)
        figure.colorbar(image, ax=axis, fraction=0.04, label="share")
    lab.save(figure, "robustness", "robustness")


def store(lab):
    table = lab["store_loss"]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for axis, at in zip(axes, ("the same replica", "another replica")):
        for acks in (1, 2, 3):
            for name, style in (("none", "--"), ("FBF", "-")):
                rows = table.where(filter=name, retries_at=at, write_acks=acks)
                axis.plot([100 * r["loss"] for r in rows], [100 * r["over"] for r in rows], style,
                          color=CYCLE[acks - 1], marker=MARKERS[acks - 1],
                          label=f"{'with FBF' if name == 'FBF' else 'without'}, answer after {acks}")
        axis.set_yscale("symlog", linthresh=0.01)
        axis.set_xlabel("messages lost (%)")
        axis.set_title(f"Retries go to {at}")
        axis.legend()
    axes[0].set_ylabel("counted too often (%)")
    lab.save(figure, "store", "store_loss")


def write_page(lab, page, names):
    """Puts the plots, and these blocks, into the folder of the page."""
    page = pathlib.Path(page)
    for name in lab.drawn:
        shutil.copy(lab.folder / f"{name}.png", page / "plots" / f"{name}.png")
    readme = page / "README.md"
    readme.write_text(rewritten(lab, readme.read_text(encoding="utf-8"), names), encoding="utf-8")


def main():
    lab = Lab(sys.argv[1])
    for name in PICTURES:
        globals()[name](lab)
    if len(sys.argv) > 2:
        write_page(lab, sys.argv[2], BLOCKS)
    print(f"{len(lab.drawn)} plots are in {lab.folder}, as SVG and PNG")


if __name__ == "__main__":
    main()

"""The results as a table on the terminal, as pictures, and as BENCHMARKS.md."""

import shutil
from pathlib import Path
from typing import Any, Dict, List, Tuple

from benchmarks.results import Results

VERDICTS = {True: "met", False: "MISSED", None: ""}
COLOURS = ("#0072B2", "#D55E00")
GROWING = {"J": "source tokens, J", "B": "sentences, B"}  # what grows, by its letter
DPI = 150
HEAD = """# Benchmarks

Written by `scripts/benchmark.sh --record`; do not edit.  A row compares its variants within one run.  A *bar* is the
figure that a row was meant to reach.  Where `rounds` are given the variants take turns, times are medians, and a ratio
is the median of the ratios within the rounds; whole commands (`simuleval`, `startup`), peaks of memory and the steps of
`growth` are measured once or twice.  Bars on time are about CPU time, with the wall time on all cores beside it; only
that of `simuleval` is on wall time.  What a row does is in the file of `benchmarks/` that defines it;
`scripts/benchmark.sh --only ROW` repeats it.

"""


def number(value: float) -> str:
    """Format a number with three or four digits, without an exponent unless it is tiny."""
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def lines(name: str, row: Dict[str, Any]) -> List[str]:
    """A row for the terminal."""
    result = [f"{name}: {row['what']}  [{row['seconds']} s]", f"    against {row['against']}"]
    for check in row["checks"]:
        value = f"{number(check['value'])} {check['unit']}".strip()
        bar = f"bar {check['bar']}: {VERDICTS[check['met']]}" if check["bar"] else ""
        result.append(f"  {value:>10}  {check['what']:<58} {bar}".rstrip())
    for variant, figures in row["figures"].items():
        shown = ", ".join(f"{number(value)} {unit}" for unit, value in figures.items())
        result.append(f"              {variant}: {shown}")
    if row["note"]:
        result.append(f"              {row['note']}")
    return result


# ---- pictures --------------------------------------------------------------------------------------------------------


def draw_bars(results: Results, path: Path) -> None:
    """Draw each measured number relative to its limit; a bar is met if it ends on the left of the line at 1."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MultipleLocator

    shown: List[Tuple[str, float, str, bool]] = []
    for name, row in results.rows.items():
        for check in row["checks"]:
            if check["limit"] and check["value"] > 0:
                relative = check["value"] / check["limit"]
                better = 1 / relative if check["bar"].startswith(">") else relative
                measured = f"{number(check['value'])} ({check['bar']})"
                shown.append((f"{name}: {check['what']}", better, measured, check["met"]))
    labels, values, measured_texts, met = zip(*shown) if shown else ((), (), (), ())
    figure = Figure(figsize=(10, 1.0 + 0.3 * len(shown)), layout="constrained")
    axes: Any = figure.add_subplot()
    axes.barh(labels, values, color=["#009E73" if good else "#D55E00" for good in met], height=0.7)
    for line, text in enumerate(measured_texts):
        axes.annotate(text, (1.02, line), xycoords=("axes fraction", "data"), fontsize=9, va="center")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlim(0, max([1.25, *values]))
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.xaxis.set_major_locator(MultipleLocator(0.25 if axes.get_xlim()[1] < 2 else 0.5))
    axes.set_xlabel("share of what the bar allows", loc="left")
    axes.tick_params(axis="y", labelsize=9, length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.invert_yaxis()
    figure.savefig(path, dpi=DPI)


def draw_growth(results: Results, path: Path) -> None:
    """One column per quantity that grows; time above, memory below; dotted lines are proportional growth."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    rows = {name: row for name, row in results.rows.items() if name.startswith("growth") and row["figures"]}
    if not rows:
        return
    figure = Figure(figsize=(3 * len(rows), 5), layout="constrained")
    for column, (name, row) in enumerate(rows.items(), start=1):
        xs = [int(variant.split("=")[1]) for variant in row["figures"]]
        for line, unit in enumerate(next(iter(row["figures"].values()))):
            axes: Any = figure.add_subplot(2, len(rows), line * len(rows) + column)
            ys = [figures[unit] for figures in row["figures"].values()]
            axes.plot(xs, [ys[0] * x / xs[0] for x in xs], ":", color="grey", linewidth=1, label="proportional growth")
            axes.plot(xs, ys, "o-", color=COLOURS[line], markersize=4)
            what = name.split("-")[1]
            axes.set(xscale="log", yscale="log", xlabel=GROWING.get(what, what), ylabel=unit)
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(lambda value, _: number(value))
            axes.set_xticks(xs, [str(x) for x in xs])
            axes.minorticks_off()
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=DPI)


# ---- BENCHMARKS.md ---------------------------------------------------------------------------------------------------


def table(header: List[str], rows: List[List[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]) + "\n"


def record(results: Results, pictures: Dict[str, Path], root: Path) -> Path:
    """BENCHMARKS.md and its pictures, in the repository."""
    folder = root / "docs" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    about = ", ".join(f"{name} {value}" for name, value in results.about["machine"].items())
    days = sorted({row["day"] for row in results.rows.values()})
    commits = sorted({row["commit"] for row in results.rows.values()})
    minutes = sum(row["seconds"] for row in results.rows.values()) / 60
    text = HEAD + f"Measured on {' and '.join(days)} in {minutes:.0f} minutes, fairseq_milk {', '.join(commits)}: "
    text += f"{about}.\n\n## Against the bars\n\n{verdict(results)}\n\n"
    text += table(["row", "", "against", "measured", "value", "bar", ""], comparison_rows(results))
    text += "\n![Every measured number relative to its bar](docs/benchmarks/bars.png)\n\n## What was measured\n\n"
    for key, row in results.rows.items():
        if row["figures"]:
            units = list(dict.fromkeys(unit for figures in row["figures"].values() for unit in figures))
            cells = [[name, *(number(f[u]) if u in f else "" for u in units)] for name, f in row["figures"].items()]
            text += f"**{key}**: {row['what']}. {'' if key.startswith('growth') else row['note']}\n\n"
            text += table(["", *units], cells) + "\n"
    text += "## How it grows\n\n![Time and memory of a training step](docs/benchmarks/growth.png)\n\n"
    text += "Dotted: growth in proportion. `time ~ J^` is followed by the exponent between the last two points.\n\n"
    for name, row in results.rows.items():
        if name.startswith("growth"):
            slopes = "; ".join(f"{check['what']}: {number(check['value'])}{check['unit']}" for check in row["checks"])
            text += f"- **{name.split('-')[1]}** ({slopes}): {row['note']}\n"
    for name, picture in pictures.items():
        if picture.exists():
            shutil.copy(picture, folder / f"{name}.png")
    path = root / "BENCHMARKS.md"
    path.write_text(text, encoding="utf-8")
    return path


def verdict(results: Results) -> str:
    """How many bars are met, and for each row the bars that are not, with what was tried."""
    barred = {name: [check for check in row["checks"] if check["bar"]] for name, row in results.rows.items()}
    missed = {name: [check for check in checks if not check["met"]] for name, checks in barred.items()}
    total, short = (sum(map(len, found.values())) for found in (barred, missed))
    text = f"{total - short} of {total} bars are met."
    for name, checks in missed.items():
        if checks:
            said = (f"{check['what']} is {number(check['value'])}, the bar is {check['bar']}" for check in checks)
            text += f"\n- {name}: {'; '.join(said)}. {results.rows[name]['tried']}"
    return text


def comparison_rows(results: Results) -> List[List[str]]:
    result = []
    for name, row in results.rows.items():
        if name.startswith("growth"):
            continue
        first = [name, row["what"], row["against"]]
        for check in row["checks"]:
            value = f"{number(check['value'])} {check['unit']}".strip()
            result.append([*first, check["what"], value, check["bar"] or "", VERDICTS[check["met"]]])
            first = ["", "", ""]
        if not row["checks"]:
            result.append([*first, row["note"], "", "", "not measured"])
    return result

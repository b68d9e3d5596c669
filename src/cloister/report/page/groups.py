"""The groups: a card for each cluster, and all centres as one table."""

from __future__ import annotations

from cloister.report.layout import choose_noun, format_noisy_count, format_value
from cloister.report.page.html import Html, join, tag
from cloister.report.page.marks import COLOURS, draw_key
from cloister.report.page.tables import make_row, make_table
from cloister.report.page.view import Cluster, View
from cloister.report.text import explain_noise, format_sizes, name_mostly_noise

_CARDS_MOST = 60
_ROWS_MOST = 200


def show_groups(view: View) -> Html:
    """Return the clusters as cards, the largest first."""
    shown = view.clusters[:_CARDS_MOST]
    sizes = _list_sizes(view)
    more = len(view.clusters) - len(shown)
    return tag(
        "section",
        tag("h2", "The groups"),
        tag("p", _explain_order(view), class_="lead"),
        tag("ul", [_show_card(view, cluster, sizes) for cluster in shown], class_="cards"),
        tag("p", f"{more:,} smaller clusters are in the table below.") if more else None,
        _show_total(view),
        id="groups",
    )


def _explain_order(view: View) -> str:
    if view.means is None:
        return "How many records each cluster has was not released, so nothing is said of all records together."
    return (
        "The largest first. Beside each are the columns that set it apart from all records together; it is listed only "
        "where the difference is more than noise."
    )


def _show_card(view: View, cluster: Cluster, sizes: list[str] | None) -> Html:
    j = cluster.number
    noisy = bool(view.result.mostly_noise[j].any())
    doubt = _name_doubt(cluster, noisy=noisy)
    return tag(
        "li",
        tag("h3", draw_key(j, hollow=bool(doubt)), f"Cluster {j}"),
        None if sizes is None else tag("p", sizes[j], class_="size"),
        None if cluster.share is None else _show_share(cluster),
        tag("p", doubt, class_="doubt") if doubt else None,
        tag("ul", [tag("li", _describe_trait(view, j, i)) for i in cluster.traits], class_="traits")
        if cluster.traits
        else tag("p", "No column sets it clearly apart.", class_="quiet")
        if view.means is not None and view.result.k > 1
        else None,
        class_="card hatched" if doubt else "card",
    )


def _name_doubt(cluster: Cluster, *, noisy: bool) -> str:
    if cluster.is_lost:
        return "May not be there: its size is lost in the noise."
    return "Mostly noise in at least one column." if noisy else ""


def _show_share(cluster: Cluster) -> Html:
    share = 100 * (cluster.share or 0.0)
    return tag(
        "div",
        tag("div", class_=f"bar c{cluster.number % COLOURS}", style=f"width:{share:.2f}%"),
        class_="share",
        role="img",
        aria_label=f"about {share:.0f} per cent of all records",
    )


def _describe_trait(view: View, j: int, i: int) -> Html:
    """Say in which direction a cluster differs in a column: "higher age: 72.08 ± 0.07 (all: 48.1 ± 0.3)"."""
    assert view.means is not None
    axis, value = view.axes[i], float(view.result.centres[j, i])
    mean = float(view.means[i])
    return join(
        "higher " if value > mean else "lower ",
        tag("b", axis.name),
        f": {format_own(view, j, i)} ",
        tag("span", f"(all: {format_mean(view, i)})", class_="quiet"),
    )


def format_own(view: View, j: int, i: int) -> str:
    """Return a coordinate of a centre with its noise."""
    noise = None if view.noise is None else float(view.noise[j, i])
    return format_value(float(view.result.centres[j, i]), view.axes[i], noise)


def format_mean(view: View, i: int) -> str:
    """Return the mean of all records in a column, with what noise does to it."""
    assert view.means is not None
    assert view.mean_noise is not None
    noise = float(view.mean_noise[i])
    return format_value(float(view.means[i]), view.axes[i], noise if noise > 0 else None)


def _list_sizes(view: View) -> list[str] | None:
    """Return the size of each cluster with its unit."""
    sizes = view.result.sizes
    if sizes is None:
        return None
    unit = " of all records" if sizes.unit == "share" else f" {sizes.unit}"
    return [text + unit for text in format_sizes(sizes)]


def _show_total(view: View) -> Html | None:
    sizes = view.result.sizes
    if sizes is None or sizes.unit == "share":
        return None
    total = format_noisy_count(sizes.total, sizes.total_noise)
    return tag("p", f"All clusters together: {total} {choose_noun(sizes.total, sizes.unit[:-1])}.")


def show_table(view: View) -> Html:
    """Return every number as a table that the script can sort."""
    result = view.result
    sizes = None if result.sizes is None else format_sizes(result.sizes)
    heads = ["cluster", *([] if sizes is None else [_name_sizes(view)]), *(axis.name for axis in view.axes)]
    shown = view.clusters[:_ROWS_MOST]
    rows = [_show_row(view, cluster.number, sizes) for cluster in shown]
    if view.means is not None and result.k > 1:
        blank = [] if sizes is None else [tag("td", _total_cell(view))]
        means = [tag("td", format_mean(view, i)) for i in range(len(view.axes))]
        rows.append(make_row("all", [*blank, *means], kind="all"))
    lines = [explain_noise(result), name_mostly_noise(result)]
    if len(shown) < result.k:
        lines.append(f"{result.k - len(shown):,} smaller clusters are in centres.npz.")
    return tag(
        "section",
        tag("h2", "All numbers"),
        make_table("Centres in original units", heads, rows, kind="numbers sortable"),
        [tag("p", line, class_="quiet") for line in lines if line],
        id="numbers",
    )


def _name_sizes(view: View) -> str:
    assert view.result.sizes is not None
    return view.result.sizes.unit


def _total_cell(view: View) -> str:
    sizes = view.result.sizes
    assert sizes is not None
    return "100 %" if sizes.unit == "share" else format_noisy_count(sizes.total, sizes.total_noise)


def _show_row(view: View, j: int, sizes: list[str] | None) -> Html:
    result = view.result
    own = [] if sizes is None or result.sizes is None else [(sizes[j], result.sizes.clusters[j], False)]
    cells = own + [
        (format_own(view, j, i), float(result.centres[j, i]), bool(result.mostly_noise[j, i]))
        for i in range(len(view.axes))
    ]
    return make_row(
        join(draw_key(j), str(j)),
        [tag("td", text, data_value=f"{value:.7g}", class_="hatched" if lost else None) for text, value, lost in cells],
    )

"""What can be read in a figure that matplotlib made."""

from __future__ import annotations

from matplotlib.figure import Figure


def assert_all_text_is_inside_and_apart(figure: Figure) -> None:
    figure.draw_without_rendering()
    page = figure.bbox.padded(-1)
    extents = []
    for axes in figure.axes:
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()] if axes.axison else []
        labels = [axes.title, *axes.texts, *ticks]
        extents += [label.get_window_extent() for label in labels if label.get_text() and label.get_visible()]
    extents += [text.get_window_extent() for text in figure.texts]
    extents += [legend.get_window_extent() for legend in figure.legends]
    for place, extent in enumerate(extents):
        assert page.x0 <= extent.x0
        assert page.y0 <= extent.y0
        assert extent.x1 <= page.x1
        assert extent.y1 <= page.y1
        assert extent.count_overlaps(extents[:place]) == 0

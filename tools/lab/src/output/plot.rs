//! Charts as SVG. The only file that knows the plotting library.
//!
//! What must always hold: the same chart gives the same SVG.

use kuva::plot::legend::LegendPosition;
use kuva::prelude::*;

use super::bars::Bars;
use crate::figure::chart::{Chart, Line};

/// Colours that people with colour-blindness can tell apart (Okabe and Ito), by place.
const COLOURS: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/// So many letters have room under a bar chart.
const MOST_LETTERS: usize = 60;

/// The chart as SVG.
pub fn svg(chart: &Chart) -> String {
    let (plots, layout) = plots(chart);
    render_to_svg(plots, layout)
}

/// A bar chart as SVG.
pub fn bars(bars: &Bars) -> String {
    let (plots, layout) = of_bars(bars);
    render_to_svg(plots, layout)
}

fn of_bars(bars: &Bars) -> (Vec<Plot>, Layout) {
    // The axis is linear from 0, or begins at the power of ten below the shortest bar; a bar that is missing has no height.
    let values = || bars.series.iter().flat_map(|(_, values)| values.iter().flatten().copied());
    let least = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let floor = if !bars.logarithmic {
        0.0
    } else if least.is_finite() {
        10f64.powf((least.log10() - 0.1).floor())
    } else {
        1.0
    };
    let highest = values().fold(if bars.logarithmic { floor * 10.0 } else { 0.0 }, f64::max);
    let mut plot = BarPlot::new();
    for (at, category) in bars.categories.iter().enumerate() {
        let values = bars.series.iter().enumerate().map(|(place, (_, values))| {
            (values[at].unwrap_or(floor).max(floor), COLOURS[place % COLOURS.len()])
        });
        plot = plot.with_group(category.as_str(), values.collect::<Vec<_>>());
    }
    plot = plot.with_legend(bars.series.iter().map(|(name, _)| name.as_str()).collect());
    let plots = vec![Plot::from(plot)];
    let layout = Layout::auto_from_plots(&plots)
        .with_title(bars.title.as_str())
        .with_y_label(bars.y.as_str())
        .with_width(860.0)
        .with_height(420.0)
        .with_legend_position(LegendPosition::OutsideRightTop)
        .with_y_axis_min(floor);
    // Names that would run into each other are turned.
    let letters: usize = bars.categories.iter().map(String::len).sum();
    let layout = if letters > MOST_LETTERS { layout.with_x_tick_rotate(-40.0) } else { layout };
    let layout = if bars.logarithmic {
        layout.with_log_y().with_y_axis_max(highest * 1.5)
    } else {
        layout.with_y_axis_max(if highest > 0.0 { highest * 1.08 } else { 1.0 })
    };
    (plots, layout)
}

fn plots(chart: &Chart) -> (Vec<Plot>, Layout) {
    if !chart.categories.is_empty() {
        return of_bars(&Bars::of(chart));
    }
    let plots: Vec<Plot> =
        chart.lines.iter().enumerate().flat_map(|(place, it)| line(place, it, chart.dots)).collect();
    let highest = chart.lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y)).fold(0.0, f64::max);
    let xs = chart.abscissae();
    let (left, right) = (xs.first().copied().unwrap_or(0.0), xs.last().copied().unwrap_or(1.0));
    let mut layout = Layout::auto_from_plots(&plots)
        .with_title(chart.title.as_str())
        .with_x_label(chart.x.as_str())
        .with_y_label(chart.y.as_str())
        .with_width(720.0)
        .with_height(420.0)
        .with_legend_position(LegendPosition::OutsideRightTop)
        .with_x_axis_min(left)
        .with_x_axis_max(right)
        .with_y_axis_min(0.0)
        .with_y_axis_max(if highest > 0.0 { highest * 1.08 } else { 1.0 });
    // Marks may be near each other: their names stand under the axis.
    let mut axis = chart.x.clone();
    for (number, (x, what)) in (1..).zip(&chart.marks) {
        layout = layout.with_reference_line(ReferenceLine::vertical(*x).with_label(number.to_string()));
        axis += &format!("{} {number} {what}", if number == 1 { ":" } else { "," });
    }
    let layout = layout.with_x_label(axis);
    (plots, layout)
}

/// A line, with a dot at each of its values unless there are many.
fn line(place: usize, line: &Line, dots: bool) -> Vec<Plot> {
    const MANY: usize = 30;
    let colour = COLOURS[place % COLOURS.len()];
    let drawn = LinePlot::new()
        .with_data(line.points.iter().copied())
        .with_color(colour)
        .with_stroke_width(2.0)
        .with_legend(line.name.as_str());
    let mut plots = if dots { Vec::new() } else { vec![Plot::from(drawn)] };
    if dots || line.points.len() <= MANY {
        plots.push(
            ScatterPlot::new()
                .with_data(line.points.iter().copied())
                .with_color(colour)
                .with_size(if dots { 2.0 } else { 4.0 })
                .into(),
        );
    }
    plots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_chart_names_its_categories_and_series() {
        let chart = Bars::new("operations", "a second")
            .series("one", [("A", 90_000.0), ("B", 300_000.0), ("C", 100_000.0)])
            .series("another", [("A", 50_000.0), ("C", 2_000_000.0)]);
        let drawn = bars(&chart);
        for text in ["operations", "a second", ">A<", ">B<", ">C<", ">one<", ">another<"] {
            assert!(drawn.contains(text), "{text} in {drawn}");
        }
    }
}

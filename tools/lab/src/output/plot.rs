//! Charts as SVG. The only file that knows the plotting library.
//!
//! What must always hold: the same chart gives the same SVG.

use kuva::plot::legend::LegendPosition;
use kuva::prelude::*;

use super::bars::Bars;
use crate::figure::chart::{Chart, Line, Stated};

/// Colours that people with colour-blindness can tell apart (Okabe and Ito), by place.
const COLOURS: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/// Marks, by place: two lines that coincide have two marks at each value.
const MARKERS: [MarkerShape; 6] = [
    MarkerShape::Circle,
    MarkerShape::Square,
    MarkerShape::Triangle,
    MarkerShape::Diamond,
    MarkerShape::TriangleDown,
    MarkerShape::Plus,
];
/// Of what the paper states, by place.
const STATED: [(&str, MarkerShape); 3] =
    [("#000000", MarkerShape::Cross), ("#7F7F7F", MarkerShape::Cross), ("#8B4513", MarkerShape::Cross)];

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
        let (plots, mut layout) = of_bars(&Bars::of(chart));
        for it in &chart.stated {
            for (_, from, to) in &it.ranges {
                let level = |y: f64| ReferenceLine::horizontal(y).with_label(it.name.as_str());
                layout = layout.with_reference_line(level(*from));
                if from != to {
                    layout = layout.with_reference_line(level(*to));
                }
            }
        }
        return (plots, layout);
    }
    let mut plots: Vec<Plot> =
        chart.lines.iter().enumerate().flat_map(|(place, it)| line(place, it, chart.dots)).collect();
    plots.extend(chart.stated.iter().enumerate().map(|(place, it)| stated(place, it)));
    let ours = chart.lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y));
    let theirs = chart.stated.iter().flat_map(|it| it.ranges.iter().map(|(_, _, most)| *most));
    let highest = ours.chain(theirs).fold(0.0, f64::max);
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

/// What the paper states: a cross for a number, a bar from end to end for a range.
fn stated(place: usize, it: &Stated) -> Plot {
    let (colour, marker) = STATED[place % STATED.len()];
    let middle = it.ranges.iter().map(|(x, from, to)| (*x, f64::midpoint(*from, *to)));
    let half = it.ranges.iter().map(|(_, from, to)| (to - from) / 2.0);
    ScatterPlot::new()
        .with_data(middle)
        .with_y_err(half)
        .with_color(colour)
        .with_marker(marker)
        .with_size(5.0)
        .with_legend(it.name.as_str())
        .into()
}

/// A line, with a mark at each of its values unless there are many. Every other one is dashed.
fn line(place: usize, line: &Line, dots: bool) -> Vec<Plot> {
    const MANY: usize = 30;
    let colour = COLOURS[place % COLOURS.len()];
    let drawn = LinePlot::new()
        .with_data(line.points.iter().copied())
        .with_color(colour)
        .with_stroke_width(2.0)
        .with_line_style(if place.is_multiple_of(2) { LineStyle::Solid } else { LineStyle::Dashed })
        .with_legend(line.name.as_str());
    let mut plots = if dots { Vec::new() } else { vec![Plot::from(drawn)] };
    if dots || line.points.len() <= MANY {
        plots.push(
            ScatterPlot::new()
                .with_data(line.points.iter().copied())
                .with_color(colour)
                .with_marker(MARKERS[place % MARKERS.len()])
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

//! What a bar chart shows: for each category a bar of every series.

use crate::figure::chart::Chart;

/// One drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// The label beside it.
    pub y: String,
    /// Values span orders of magnitude.
    pub logarithmic: bool,
    /// Categories, in order.
    pub categories: Vec<String>,
    /// Series with a value for each category, or none.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

impl Bars {
    /// Without bars, on a logarithmic scale.
    pub fn new(title: &str, y: &str) -> Self {
        Self {
            title: title.to_owned(),
            y: y.to_owned(),
            logarithmic: true,
            categories: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Those of a chart of categories.
    pub fn of(chart: &Chart) -> Self {
        let bars = Self { logarithmic: chart.logarithmic, ..Self::new(&chart.title, &chart.y) };
        chart.lines.iter().fold(bars, |bars, line| {
            let categories = chart.categories.iter().enumerate();
            let values = categories.filter_map(|(x, name)| Some((name.as_str(), line.at(x as f64)?)));
            bars.series(&line.name, values)
        })
    }

    /// Adds a series; categories that are new come last.
    #[must_use]
    pub fn series<'a>(mut self, name: &str, values: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let mut row = vec![None; self.categories.len()];
        for (category, value) in values {
            let at = self.categories.iter().position(|known| known == category).unwrap_or_else(|| {
                self.categories.push(category.to_owned());
                self.series.iter_mut().for_each(|(_, values)| values.push(None));
                row.push(None);
                self.categories.len() - 1
            });
            row[at] = Some(value);
        }
        self.series.push((name.to_owned(), row));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_of_categories_has_a_bar_for_each_row_and_column() {
        let rows = vec![("A".to_owned(), vec![1.0, 2.0]), ("B".to_owned(), vec![3.0, 4.0])];
        let chart = Chart::bars(("c", "title", "y"), &["one", "two"], rows);
        let bars = Bars::of(&chart);
        assert_eq!((bars.title.as_str(), bars.logarithmic), ("title", false));
        assert_eq!(bars.categories, ["A", "B"]);
        assert_eq!(bars.series[1], ("two".to_owned(), vec![Some(2.0), Some(4.0)]));
        assert_eq!((chart.of("B", 0), chart.of("B", 2), chart.of("C", 0)), (Some(3.0), None, None));
        assert_eq!((chart.called(1.0), Chart::new("", "", "", "").called(0.5)), ("B".into(), "0.5".into()));
    }

    #[test]
    fn every_series_has_a_place_for_every_category() {
        let bars = Bars::new("", "").series("one", [("A", 1.0)]).series("two", [("B", 2.0), ("A", 3.0)]);
        assert_eq!(bars.categories, ["A", "B"]);
        assert_eq!(bars.series[0], ("one".to_owned(), vec![Some(1.0), None]));
        assert_eq!(bars.series[1], ("two".to_owned(), vec![Some(3.0), Some(2.0)]));
    }
}

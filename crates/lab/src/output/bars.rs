//! What a bar chart shows: for each category a bar of every series. Values span orders of magnitude.

/// One drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// The label beside it.
    pub y: String,
    /// Categories, in order.
    pub categories: Vec<String>,
    /// Series with a value for each category, or none.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

impl Bars {
    /// Without bars.
    pub fn new(title: &str, y: &str) -> Self {
        Self { title: title.to_owned(), y: y.to_owned(), categories: Vec::new(), series: Vec::new() }
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
    fn every_series_has_a_place_for_every_category() {
        let bars = Bars::new("", "").series("one", [("A", 1.0)]).series("two", [("B", 2.0), ("A", 3.0)]);
        assert_eq!(bars.categories, ["A", "B"]);
        assert_eq!(bars.series[0], ("one".to_owned(), vec![Some(1.0), None]));
        assert_eq!(bars.series[1], ("two".to_owned(), vec![Some(3.0), Some(2.0)]));
    }
}

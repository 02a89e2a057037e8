//! Charts as lines of comma-separated values.
//!
//! What must always hold: every line has as many fields as the first, and no field needs quotes.

use std::fmt::Write;

use crate::figure::chart::Chart;

/// A chart's lines: x, then a column for each.
pub fn chart(chart: &Chart) -> String {
    let plain = |text: &str| text.replace(',', ";");
    let mut text = plain(&chart.x);
    for line in &chart.lines {
        write!(text, ",{}", plain(&line.name)).expect("text grows");
    }
    text.push('\n');
    for x in chart.abscissae() {
        text += &plain(&chart.called(x));
        for line in &chart.lines {
            text.push(',');
            if let Some(y) = line.at(x) {
                write!(text, "{y}").expect("text grows");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_column_for_each_line_and_gaps_where_one_has_no_value() {
        let of = Chart::new("c", "", "x", "y")
            .line("a", [(1.0, 2.0), (2.0, 0.1 + 0.2)])
            .line("b, c", [(2.0, 5.0)]);
        assert_eq!(chart(&of), "x,a,b; c\n1,2,\n2,0.30000000000000004,5\n");
    }
}

//! A sentence of a paper with a number in it, beside ours.
//!
//! What must always hold: whether a claim is met follows from its numbers alone; a claim that an input was fitted to, or that
//! cannot come out otherwise, is never met.

use serde::{Deserialize, Serialize};

/// How far ours may be from the paper's, as a share of it.
const TOLERANCE: f64 = 0.25;
/// How far from equal something may be that the paper calls equal.
const EQUAL: f64 = 0.1;

/// What kind of number it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// A ratio between two runs: to be met in direction, and in size.
    Ratio,
    /// Only which side is ahead: the paper gives no size.
    Order,
    /// A measured quantity: it stands beside the paper's, so that nobody wins against a slow baseline.
    Quantity,
}

/// What a claim can show.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The paper's number is a test of ours.
    #[default]
    Paper,
    /// An input was fitted to it: it is no result.
    Calibrated,
    /// It follows from how the experiment is built: it could not come out otherwise.
    Construction,
    /// A target of our own; the paper does not say it.
    Ours,
}

impl Basis {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_paper(&self) -> bool {
        *self == Self::Paper
    }
}

/// A claim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// What is said.
    pub what: String,
    /// What kind of number.
    pub kind: ClaimKind,
    /// The paper's: from this.
    pub least: f64,
    /// To this; without it, upwards.
    pub most: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// The unit of both.
    pub unit: String,
    /// What it can show.
    #[serde(default, skip_serializing_if = "Basis::is_paper")]
    pub basis: Basis,
    /// Why ours differs, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl Claim {
    /// A ratio that the paper gives as one number.
    pub fn ratio(what: &str, paper: f64, ours: f64) -> Self {
        Self::of(what, ClaimKind::Ratio, (paper, Some(paper)), ours, "x")
    }

    /// A ratio that the paper gives as a range.
    pub fn range(what: &str, (least, most): (f64, f64), ours: f64) -> Self {
        Self::of(what, ClaimKind::Ratio, (least, Some(most)), ours, "x")
    }

    /// The first of two is ahead: `ours` is its ratio to the second.
    pub fn ahead(what: &str, ours: f64) -> Self {
        Self::of(what, ClaimKind::Order, (1.0, None), ours, "x")
    }

    /// The first of two is at least so many times the second.
    pub fn at_least(what: &str, least: f64, ours: f64) -> Self {
        Self::of(what, ClaimKind::Order, (least, None), ours, "x")
    }

    /// A target of our own: the first of two is at least so many times the second.
    pub fn target(what: &str, least: f64, ours: f64) -> Self {
        Self { basis: Basis::Ours, ..Self::at_least(what, least, ours) }
    }

    /// The paper's plot falls along these values, all the way: ours is the least step down, as a ratio.
    pub fn falls(what: &str, values: &[f64]) -> Self {
        let steps = values.windows(2).map(|two| two[0] / two[1]);
        Self::ahead(what, steps.fold(f64::INFINITY, f64::min))
    }

    /// The paper's plot rises along these values, all the way: ours is the least step up, as a ratio.
    pub fn rises(what: &str, values: &[f64]) -> Self {
        let steps = values.windows(2).map(|two| two[1] / two[0]);
        Self::ahead(what, steps.fold(f64::INFINITY, f64::min))
    }

    /// A quantity.
    pub fn quantity(what: &str, paper: f64, ours: f64, unit: &str) -> Self {
        Self::of(what, ClaimKind::Quantity, (paper, Some(paper)), ours, unit)
    }

    /// A quantity of which the paper says only that it is over a number.
    pub fn over(what: &str, least: f64, ours: f64, unit: &str) -> Self {
        Self::of(what, ClaimKind::Order, (least, None), ours, unit)
    }

    fn of(what: &str, kind: ClaimKind, (least, most): (f64, Option<f64>), ours: f64, unit: &str) -> Self {
        Self {
            what: what.to_owned(),
            kind,
            least,
            most,
            ours,
            unit: unit.to_owned(),
            basis: Basis::Paper,
            cause: None,
        }
    }

    /// This is a target of our own.
    #[must_use]
    pub fn of_ours(self) -> Self {
        Self { basis: Basis::Ours, ..self }
    }

    /// An input was fitted to this number.
    #[must_use]
    pub fn calibrated(self) -> Self {
        Self { basis: Basis::Calibrated, ..self }
    }

    /// This follows from how the experiment is built.
    #[must_use]
    pub fn by_construction(self) -> Self {
        Self { basis: Basis::Construction, ..self }
    }

    /// Why ours differs. It is shown only if it does.
    #[must_use]
    pub fn because(mut self, cause: &str) -> Self {
        if !self.holds() && !cause.is_empty() {
            self.cause = Some(cause.to_owned());
        }
        self
    }

    /// Ours over the nearest number that the paper gives: 1 inside its range.
    pub fn to_paper(&self) -> f64 {
        match self.most {
            _ if self.ours < self.least => self.ours / self.least,
            Some(most) if self.ours > most => self.ours / most,
            _ => 1.0,
        }
    }

    /// Whether ours is on the paper's side of 1. A quantity has no sides, nor has equality.
    pub fn direction(&self) -> Option<bool> {
        let above = |value: f64| value > 1.0;
        match self.kind {
            ClaimKind::Quantity => None,
            ClaimKind::Order => Some(self.ours > self.least),
            // "As much as": there is no direction to be right about.
            ClaimKind::Ratio if self.least == 1.0 => None,
            ClaimKind::Ratio => Some(above(self.ours) == above(self.least)),
        }
    }

    /// Whether ours is within a quarter of the paper's, or a tenth of what it calls equal. An order has no size.
    pub fn size(&self) -> Option<bool> {
        let is_equality = self.kind == ClaimKind::Ratio && self.least == 1.0 && self.most == Some(1.0);
        let tolerance = if is_equality { EQUAL } else { TOLERANCE };
        (self.kind != ClaimKind::Order).then(|| (self.to_paper() - 1.0).abs() <= tolerance)
    }

    /// Right in direction, and in size, whatever that shows.
    fn holds(&self) -> bool {
        self.direction() != Some(false) && self.size() != Some(false)
    }

    /// Right in direction, and in size, where it could have come out otherwise.
    pub fn met(&self) -> bool {
        matches!(self.basis, Basis::Paper | Basis::Ours) && self.holds()
    }

    /// The paper's number as text.
    pub fn paper_text(&self) -> String {
        let unit = &self.unit;
        match self.most {
            None => format!("> {}{}", number(self.least), spaced(unit)),
            Some(most) if most == self.least => format!("{}{}", number(most), spaced(unit)),
            Some(most) => format!("{} to {}{}", number(self.least), number(most), spaced(unit)),
        }
    }

    /// Our number as text.
    pub fn ours_text(&self) -> String {
        format!("{}{}", number(self.ours), spaced(&self.unit))
    }

    /// What came of it, in a word or two.
    pub fn verdict(&self) -> &'static str {
        match self.basis {
            Basis::Calibrated => return "calibrated",
            Basis::Construction => return "by construction",
            Basis::Paper | Basis::Ours => {}
        }
        match (self.direction(), self.size()) {
            (Some(false), _) => "no",
            (None, Some(false)) => "differs",
            (_, Some(false)) => "direction only",
            _ => "yes",
        }
    }
}

fn spaced(unit: &str) -> String {
    if unit == "x" { unit.to_owned() } else { format!(" {unit}") }
}

/// A number with three digits that count.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.0995 || size == 0.0 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_the_papers_range_the_ratio_is_one() {
        for ours in [1.3, 1.4, 1.48] {
            let claim = Claim::range("", (1.3, 1.48), ours);
            assert!(claim.to_paper() == 1.0 && claim.met(), "{ours}");
        }
    }

    #[test]
    fn outside_it_is_taken_to_the_nearer_end() {
        let (low, high) = (Claim::range("", (2.0, 4.0), 1.0), Claim::range("", (2.0, 4.0), 6.0));
        assert_eq!((low.to_paper(), high.to_paper()), (0.5, 1.5));
        assert!(!low.met() && !high.met());
        assert_eq!((low.verdict(), high.verdict()), ("no", "direction only"));
    }

    #[test]
    fn a_quarter_off_is_met_and_more_is_not() {
        let met = |ours| Claim::ratio("", 4.0, ours).met();
        assert!(met(5.0) && met(3.0));
        assert!(!met(5.1) && !met(2.9));
    }

    #[test]
    fn the_wrong_direction_is_not_met_even_when_it_is_near() {
        let claim = Claim::ratio("", 1.1, 0.99);
        assert_eq!((claim.size(), claim.direction(), claim.met()), (Some(true), Some(false), false));
    }

    #[test]
    fn an_order_has_no_size_and_a_quantity_no_direction() {
        assert_eq!((Claim::ahead("", 30.0).size(), Claim::ahead("", 30.0).met()), (None, true));
        assert!(!Claim::ahead("", 0.9).met());
        let quantity = Claim::quantity("", 133.0, 60.0, "Mops");
        assert_eq!((quantity.direction(), quantity.verdict()), (None, "differs"));
    }

    #[test]
    fn equality_is_a_matter_of_size_alone() {
        let [near, far] = [0.92, 0.88].map(|ours| Claim::ratio("", 1.0, ours));
        assert_eq!((near.verdict(), far.verdict()), ("yes", "differs"));
    }

    #[test]
    fn what_was_fitted_and_what_cannot_fail_is_never_met() {
        let claim = Claim::ratio("", 4.0, 4.0);
        let (fitted, built) = (claim.clone().calibrated(), claim.clone().by_construction());
        assert!(claim.met() && !fitted.met() && !built.met());
        assert_eq!((fitted.verdict(), built.verdict()), ("calibrated", "by construction"));
    }

    #[test]
    fn a_trend_is_met_if_every_step_goes_its_way() {
        assert!(Claim::falls("", &[3.0, 2.0, 1.0]).met() && Claim::rises("", &[1.0, 2.0]).met());
        assert!(!Claim::falls("", &[3.0, 1.0, 2.0]).met() && !Claim::rises("", &[1.0, 1.0]).met());
    }

    #[test]
    fn a_cause_is_kept_only_where_something_differs() {
        assert_eq!(Claim::ratio("", 2.0, 2.1).because("noise").cause, None);
        assert_eq!(Claim::ratio("", 2.0, 4.0).because("noise").cause.as_deref(), Some("noise"));
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        let texts = [133.4, 23.04, 1.388, 0.02, 0.0].map(number);
        assert_eq!(texts, ["133", "23.0", "1.39", "0.0200", "0.00"]);
    }
}

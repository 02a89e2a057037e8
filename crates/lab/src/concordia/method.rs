//! The constants of all figures, as they stand in the code.

use sim::flowcc::{Config, Costs};
use sim::hardware::Testbed;
use sim::rack::Setup;

use crate::output::document::Constant;
use crate::{gam, grappa};

/// All constants that results depend on.
pub fn constants() -> Vec<Constant> {
    let setup = Setup::new(8);
    let flowcc = Config::new(8);
    let own = [
        Constant::new(
            "hand-over between processors of a node",
            nanos(setup.hand_over.0),
            "`sim::rack::Setup`",
        ),
        Constant::new("entries of the switch", flowcc.switch_entries, "`sim::flowcc::Config`"),
        Constant::new("epoch of hotness", nanos(flowcc.epoch.0), "`sim::flowcc::Config`"),
        Constant::new(
            "blocks that a home moves in an epoch, at most",
            flowcc.hottest,
            "`sim::flowcc::Config`",
        ),
    ];
    let parts = [
        ("", "`sim::hardware::Testbed`", format!("{:#?}", Testbed::CONCORDIA)),
        ("FlowCC: ", "`sim::flowcc::Costs`", format!("{:#?}", Costs::PAPER)),
        ("GAM: ", "`lab::gam::Costs`", format!("{:#?}", gam::Costs::PAPER)),
        ("Grappa: ", "`lab::grappa::Costs`", format!("{:#?}", grappa::Costs::PAPER)),
    ];
    let fields = parts.iter().flat_map(|(whose, source, debug)| {
        fields(debug)
            .into_iter()
            .map(move |(name, value)| Constant::new(&format!("{whose}{name}"), value, source))
    });
    own.into_iter().chain(fields).collect()
}

fn nanos(count: u64) -> String {
    format!("{count} ns")
}

/// The fields of a struct, from its pretty debug form.
fn fields(debug: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in debug.lines().skip(1) {
        let inner = line.strip_prefix("    ");
        match inner
            .filter(|inner| !inner.starts_with([' ', '}', ')']))
            .and_then(|inner| inner.split_once(": "))
        {
            Some((name, value)) => fields.push((name.replace('_', " "), value.to_owned())),
            None => {
                if let (Some((_, value)), Some(more)) = (fields.last_mut(), inner) {
                    value.push_str(more.trim());
                }
            }
        }
    }
    for (_, value) in &mut fields {
        let plain = value.trim_end_matches(',').replace(",)", ")").replace(",}", " }");
        let time = plain.strip_prefix("Nanos(").and_then(|rest| rest.strip_suffix(')'));
        *value =
            time.map_or_else(|| plain.replace('{', "{ ").replace(',', ", "), |count| format!("{count} ns"));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_testbed_is_listed_on_one_line() {
        let all = constants();
        let of = |what: &str| {
            all.iter().find(|constant| constant.what == what).map(|constant| constant.value.as_str())
        };
        assert_eq!(of("cable"), Some("15 ns"));
        assert_eq!(of("ports"), Some("32"));
        assert_eq!(of("FlowCC: access"), Some("240 ns"));
        assert_eq!(of("framing"), Some("Framing { mtu: 4096, overhead: 66 }"));
        assert!(all.iter().all(|constant| !constant.value.contains('\n') && !constant.value.contains('|')));
    }
}

//! The files that YCSB ships (crates/cli/tests/ycsb, byte by byte), and what they must come out as; then files
//! that must be refused.

use super::*;
use crate::ycsb::workload::OperationKind;

const A: &str = include_str!("../../tests/ycsb/workloada");
const B: &str = include_str!("../../tests/ycsb/workloadb");
const C: &str = include_str!("../../tests/ycsb/workloadc");
const D: &str = include_str!("../../tests/ycsb/workloadd");
const E: &str = include_str!("../../tests/ycsb/workloade");
const F: &str = include_str!("../../tests/ycsb/workloadf");
const TEMPLATE: &str = include_str!("../../tests/ycsb/workload_template");

fn parsed(text: &str) -> Result<(Workload, Vec<String>), String> {
    parse("test", text, Overrides::default())
}

fn workload(text: &str) -> Workload {
    parsed(text).unwrap().0
}

/// A complete file, with these lines too.
fn with(lines: &str) -> String {
    format!("recordcount=10\noperationcount=20\n{lines}\n")
}

fn refusal(lines: &str) -> String {
    parsed(&with(lines)).unwrap_err()
}

#[test]
fn the_six_standard_files_are_the_workloads_of_their_letters() {
    for (letter, text) in [('A', A), ('B', B), ('C', C), ('D', D), ('E', E), ('F', F)] {
        let (workload, warnings) = parsed(text).unwrap();
        let same = Workload {
            name: "test".into(),
            records: 1000,
            operations: 1000,
            ..Workload::letter(letter).unwrap()
        };
        assert_eq!((workload, warnings), (same, Vec::new()), "workload {letter}");
    }
}

#[test]
fn the_template_runs_and_names_what_changes_nothing() {
    let (workload, warnings) = parsed(TEMPLATE).unwrap();
    assert_eq!((workload.records, workload.operations), (1_000_000, 3_000_000));
    assert_eq!(workload.requests, Requests::Zipfian);
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    for key in
        ["hotspotdatafraction", "measurementtype", "table", "discardscannedrecord", "histogram.buckets (line"]
    {
        assert!(warning.contains(key), "{key} in {warning}");
    }
    for key in ["maxscanlength", "fieldlength", "insertorder"] {
        assert!(!warning.contains(key), "{key} in {warning}");
    }
}

#[test]
fn a_file_that_says_nothing_else_has_the_defaults_of_ycsb() {
    let workload = workload(&with(""));
    assert_eq!(workload.mix, Mix::new(0.95, 0.05, 0.0, 0.0));
    assert_eq!(workload.requests, Requests::Uniform);
    assert_eq!((workload.fields, workload.field_len, workload.write_all_fields), (10, 100, false));
    assert_eq!(workload.names, KeyNames { ordered: false, digits: 1 });
}

#[test]
fn properties_of_the_record_and_the_keys_are_followed() {
    let workload = workload(&with(
        "fieldcount: 3\nfieldlength 7\nwriteallfields=TRUE\ninsertorder=ordered\nzeropadding=9",
    ));
    assert_eq!((workload.record_len(), workload.write_all_fields), (21, true));
    assert_eq!(workload.names, KeyNames { ordered: true, digits: 9 });
}

#[test]
fn proportions_are_weights_as_in_ycsb() {
    let workload = workload(&with("readproportion=3\nupdateproportion=0\nreadmodifywriteproportion=1"));
    assert!((workload.mix.share(OperationKind::Read) - 0.75).abs() < 1e-12);
    assert!((workload.mix.share(OperationKind::ReadModifyWrite) - 0.25).abs() < 1e-12);
}

#[test]
fn flags_replace_what_the_file_says_and_what_it_leaves_out() {
    let overrides = Overrides { records: Some(5), operations: Some(6) };
    for text in [A, "readproportion=1"] {
        let (workload, _) = parse("test", text, overrides).unwrap();
        assert_eq!((workload.records, workload.operations), (5, 6));
    }
}

#[test]
fn misspelt_keys_are_named_with_their_lines() {
    let (_, warnings) = parsed(&with("readpropotion=1\nrequestdistribution=latest\nfieldlenght=5")).unwrap();
    assert!(warnings[0].ends_with("readpropotion (line 3), fieldlenght (line 5)"), "{warnings:?}");
}

#[test]
fn reading_single_fields_is_not_followed_but_said() {
    let (_, warnings) = parsed(&with("readallfields=false")).unwrap();
    assert!(warnings[0].contains("readallfields"), "{warnings:?}");
}

#[test]
fn missing_counts_are_asked_for_with_the_flag_that_gives_them() {
    let error = parsed("operationcount=1").unwrap_err();
    assert!(error.contains("`recordcount` is missing") && error.contains("--records"), "{error}");
    let error = parsed("recordcount=1").unwrap_err();
    assert!(error.contains("`operationcount` is missing") && error.contains("--operations"), "{error}");
    assert!(parsed("recordcount=0\noperationcount=1").unwrap_err().contains("at least 1"));
}

#[test]
fn values_that_make_no_sense_are_refused_with_their_line() {
    let error = refusal("fieldcount=ten");
    assert!(error.contains("line 3") && error.contains("`ten`"), "{error}");
    for lines in
        ["readproportion=-1", "readproportion=NaN", "updateproportion=inf", "fieldlength=0", "fieldcount=-1"]
    {
        assert!(parsed(&with(lines)).is_err(), "{lines}");
    }
    assert!(refusal("readproportion=0\nupdateproportion=0").contains("all proportions are 0"));
    assert!(refusal("fieldlength=99999999").contains("more than"));
    assert!(refusal("zeropadding=1000000000").contains("zeropadding"));
}

#[test]
fn what_would_be_another_workload_is_refused() {
    for (lines, named) in [
        ("requestdistribution=hotspot", "hotspot"),
        ("workload=site.ycsb.workloads.TimeSeriesWorkload", "CoreWorkload"),
        ("fieldlengthdistribution=zipfian", "constant"),
        ("insertstart=100", "insertstart"),
        ("dataintegrity=true", "dataintegrity"),
        ("scanproportion=0.1\nscanlengthdistribution=zipfian", "uniform"),
        ("minscanlength=7\nmaxscanlength=6", "minscanlength"),
        ("maxscanlength=0", "at least 1"),
    ] {
        let error = refusal(lines);
        assert!(error.contains(named), "{lines}: {error}");
    }
    assert!(parsed(&with("workload=com.yahoo.ycsb.workloads.CoreWorkload")).is_ok());
}

#[test]
fn no_file_makes_the_parser_panic() {
    let mut random = crate::ycsb::random::Random::new(9, 0);
    let pick = |random: &mut crate::ycsb::random::Random, of: &[&str]| {
        of[usize::try_from(random.below(of.len() as u64)).unwrap()].to_owned()
    };
    let values = ["", "0", "1", "-1", "0.5", "1e308", "18446744073709551615", "true", "latest", "x", "\\u00"];
    for _ in 0..5_000 {
        let text: String = (0..random.below(12))
            .map(|_| pick(&mut random, &USED) + "=" + &pick(&mut random, &values) + "\n")
            .collect();
        let _ = parsed(&text);
    }
}

//! YCSB core property files, unmodified, as workloads.
//!
//! What a property asks for is done, or refused, or named in a warning; nothing is dropped in silence but what
//! only scans would look at, in a file without scans.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use super::keys::KeyNames;
use super::properties::{self, Property};
use super::workload::{Mix, Requests, Workload};

/// Properties that change what a run does here.
const USED: [&str; 21] = [
    "maxscanlength",
    "minscanlength",
    "scanlengthdistribution",
    "workload",
    "recordcount",
    "operationcount",
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
    "requestdistribution",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "readallfields",
    "writeallfields",
    "insertorder",
    "zeropadding",
    "insertstart",
    "dataintegrity",
];

/// A property that means nothing with the one value that another may have here.
const MOOT: [&str; 1] = ["minfieldlength"];

/// The values of a file that the command line may replace.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Overrides {
    pub(crate) records: Option<u64>,
    pub(crate) operations: Option<u64>,
}

/// Reads a workload from a file; gives it with warnings about what the file says in vain.
pub(crate) fn read(path: &Path, overrides: Overrides) -> Result<(Workload, Vec<String>), String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| {
        format!(
            "cannot read workload file `{shown}`: {error}\n  \
             --workload takes A, B, C, D, E, F or the path of a YCSB core property file"
        )
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("workload file `{shown}` is not text: a YCSB core property file is needed"))?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    parse(&name, &text, overrides).map_err(|error| format!("workload file `{shown}`: {error}")).map(
        |(workload, warnings)| {
            (
                workload,
                warnings.into_iter().map(|warning| format!("workload file `{shown}`: {warning}")).collect(),
            )
        },
    )
}

/// The workload that a property file describes.
pub(crate) fn parse(name: &str, text: &str, overrides: Overrides) -> Result<(Workload, Vec<String>), String> {
    let file =
        File(properties::parse(text)?.into_iter().map(|property| (property.key.clone(), property)).collect());
    let mut warnings = file.unknown_keys();
    file.refuse_what_cannot_be()?;
    if !file.flag("readallfields", true)? {
        warnings.push("`readallfields=false` is not followed: a read copies out the whole record".to_owned());
    }
    let required = |key: &str, given: Option<u64>, flag: &str| match given {
        Some(value) => Ok(value),
        None => file
            .get::<u64>(key, "a whole number")?
            .ok_or_else(|| format!("`{key}` is missing, and has no default: add it, or pass {flag}")),
    };
    let fields = file.positive("fieldcount", 10)?;
    let field_len = file.positive("fieldlength", 100)?;
    fields.checked_mul(field_len).filter(|len| *len <= MOST_RECORD_BYTES).ok_or_else(|| {
        format!(
            "`fieldcount` x `fieldlength` is more than the {MOST_RECORD_BYTES} bytes that a record may have"
        )
    })?;
    let workload = Workload {
        name: name.to_owned(),
        mix: file.mix()?,
        requests: file.requests()?,
        records: required("recordcount", overrides.records, "--records")?,
        operations: required("operationcount", overrides.operations, "--operations")?,
        fields,
        field_len,
        scan_lengths: file.scan_lengths()?,
        write_all_fields: file.flag("writeallfields", false)?,
        names: KeyNames {
            ordered: file.text("insertorder").is_some_and(|order| order != "hashed"),
            digits: file.get("zeropadding", "a whole number")?.unwrap_or(1),
        },
    };
    if workload.records == 0 || workload.operations == 0 {
        return Err("`recordcount` and `operationcount` must be at least 1 (YCSB's 0, for no limit, is not \
                    supported): change them, or pass --records and --operations"
            .to_owned());
    }
    if workload.names.digits > MOST_KEY_DIGITS {
        return Err(format!("`zeropadding` is more than the {MOST_KEY_DIGITS} digits that a key may have"));
    }
    Ok((workload, warnings))
}

/// The largest record, with which a run still makes sense on one machine.
const MOST_RECORD_BYTES: usize = 1 << 20;
/// The longest number in a key.
const MOST_KEY_DIGITS: usize = 200;

/// The properties of a file; of keys that are given twice, the last.
struct File(BTreeMap<String, Property>);

impl File {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|property| property.value.as_str())
    }

    /// A value that reads as `T`, if there is one.
    fn get<T: FromStr>(&self, key: &str, what: &str) -> Result<Option<T>, String> {
        let Some(Property { line, value, .. }) = self.0.get(key) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| format!("line {line}: `{key}` is `{value}`, which is not {what}"))
    }

    fn positive(&self, key: &str, default: usize) -> Result<usize, String> {
        match self.get(key, "a whole number")? {
            Some(0) => Err(format!("`{key}` must be at least 1")),
            given => Ok(given.unwrap_or(default)),
        }
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool, String> {
        // As Java reads flags: `true` in any case is true, all else is false.
        Ok(self.text(key).map_or(default, |value| value.eq_ignore_ascii_case("true")))
    }

    fn proportion(&self, key: &str, default: f64) -> Result<f64, String> {
        let value = self.get(key, "a number")?.unwrap_or(default);
        if (0.0..=1e9).contains(&value) {
            Ok(value)
        } else {
            Err(format!("`{key}` is {value}: it must be 0 or more"))
        }
    }

    fn mix(&self) -> Result<Mix, String> {
        let read = self.proportion("readproportion", 0.95)?;
        let update = self.proportion("updateproportion", 0.05)?;
        let insert = self.proportion("insertproportion", 0.0)?;
        let read_modify_write = self.proportion("readmodifywriteproportion", 0.0)?;
        let scan = self.proportion("scanproportion", 0.0)?;
        if read + update + insert + read_modify_write + scan <= 0.0 {
            return Err("all proportions are 0: at least one kind of operation must occur".to_owned());
        }
        Ok(Mix::of([read, update, insert, read_modify_write, scan]))
    }

    fn scan_lengths(&self) -> Result<(u64, u64), String> {
        let least = self.positive("minscanlength", 1)? as u64;
        let most = self.positive("maxscanlength", 1000)? as u64;
        match self.text("scanlengthdistribution") {
            Some(other) if other != "uniform" && self.proportion("scanproportion", 0.0)? > 0.0 => {
                Err(format!(
                    "`scanlengthdistribution={other}` is not supported: only `scanlengthdistribution=uniform` is"
                ))
            }
            _ if least > most => Err(format!("`minscanlength` is {least}, and `maxscanlength` {most}")),
            _ => Ok((least, most)),
        }
    }

    fn requests(&self) -> Result<Requests, String> {
        match self.text("requestdistribution").unwrap_or("uniform") {
            "uniform" => Ok(Requests::Uniform),
            "zipfian" => Ok(Requests::Zipfian),
            "latest" => Ok(Requests::Latest),
            other => Err(format!(
                "`requestdistribution={other}` is not supported: uniform, zipfian and latest are"
            )),
        }
    }

    /// Errors for what would make the run another one than the file means.
    fn refuse_what_cannot_be(&self) -> Result<(), String> {
        let class = self.text("workload").unwrap_or("CoreWorkload");
        if class.rsplit('.').next() != Some("CoreWorkload") {
            return Err(format!("`workload={class}` is not supported: only YCSB's CoreWorkload is"));
        }
        for (key, only) in
            [("fieldlengthdistribution", "constant"), ("insertstart", "0"), ("dataintegrity", "false")]
        {
            if let Some(value) = self.text(key).filter(|value| *value != only) {
                return Err(format!("`{key}={value}` is not supported: only `{key}={only}` is"));
            }
        }
        Ok(())
    }

    /// A warning that names the keys that change nothing, if there are any.
    fn unknown_keys(&self) -> Vec<String> {
        let mut unknown: Vec<&Property> = self
            .0
            .values()
            .filter(|property| {
                !USED.contains(&property.key.as_str()) && !MOOT.contains(&property.key.as_str())
            })
            .collect();
        if unknown.is_empty() {
            return Vec::new();
        }
        unknown.sort_by_key(|property| property.line);
        let named: Vec<String> =
            unknown.iter().map(|property| format!("{} (line {})", property.key, property.line)).collect();
        vec![format!("these properties are unknown here and change nothing: {}", named.join(", "))]
    }
}

#[cfg(test)]
#[path = "core_file_tests.rs"]
mod tests;

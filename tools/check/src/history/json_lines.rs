//! The file format of a history: JSON lines, as `rackmem ycsb --history FILE` writes them.
//!
//! One object a line, in any order:
//! - `client`: a whole number
//! - `op`: `read`, `insert`, `update`, `delete` or `rmw`
//! - `key`: a string
//! - `value`: written or read (for `rmw`: read), a digest as 16 hex digits; `null` where the key was absent.
//!   An `update` with `null` found the key absent and changed nothing. A `delete` needs none.
//! - `new`, for `rmw` only: what it wrote; `null` if it found the key absent and changed nothing
//! - `invoke`, `return`: nanoseconds of one clock; a `return` of `null` means that it never returned
//!
//! Other fields are ignored, and so are empty lines. What must always hold: what is written reads back the
//! same, and a line that does not say exactly one operation is an error that names the line.

use std::fmt;
use std::io::{self, BufRead, Write};

use serde_json::{Map, Value};
use wire::Nanos;

use super::{Digest, Op, Operation};

/// Why a history could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be read any further.
    Io {
        /// The line that could not be read, counted from 1.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A line is not an operation.
    Malformed {
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it, and what should be there.
        why: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { line, source } => write!(f, "history line {line} cannot be read: {source}"),
            Self::Malformed { line, why } => write!(f, "history line {line}: {why}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Malformed { .. } => None,
        }
    }
}

/// Reads a whole history.
///
/// # Errors
/// At the first line that cannot be read or is not an operation.
pub fn read_json_lines(mut from: impl BufRead) -> Result<Vec<Operation>, ReadError> {
    let mut history = Vec::new();
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        if from.read_line(&mut text).map_err(|source| ReadError::Io { line, source })? == 0 {
            break;
        }
        if !text.trim().is_empty() {
            history.push(parse(&text).map_err(|why| ReadError::Malformed { line, why })?);
        }
    }
    Ok(history)
}

/// Writes one operation as one line. Callers write many: hand in a buffered writer.
///
/// # Errors
/// If the writer fails.
pub fn write_json_line(mut to: impl Write, operation: &Operation) -> io::Result<()> {
    let (op, value) = match operation.op {
        Op::Read { value } => ("read", value),
        Op::Insert { value } => ("insert", Some(value)),
        Op::Update { value } => ("update", value),
        Op::Delete => ("delete", None),
        Op::Rmw { value, .. } => ("rmw", value),
    };
    write!(to, r#"{{"client":{},"op":"{op}","key":"#, operation.client)?;
    serde_json::to_writer(&mut to, &operation.key)?;
    write!(to, r#","value":{}"#, Hex(value))?;
    if let Op::Rmw { new, .. } = operation.op {
        write!(to, r#","new":{}"#, Hex(Some(new)))?;
    }
    write!(to, r#","invoke":{},"return":"#, operation.invoke.0)?;
    match operation.ret {
        Some(ret) => writeln!(to, "{}}}", ret.0),
        None => writeln!(to, "null}}"),
    }
}

struct Hex(Option<Digest>);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(digest) => write!(f, r#""{digest:016x}""#),
            None => f.write_str("null"),
        }
    }
}

fn parse(line: &str) -> Result<Operation, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let Value::Object(mut fields) = value else {
        return Err("expected one JSON object, {\"client\":…,\"op\":…,…}".to_owned());
    };
    let client = number(&fields, "client")?.ok_or("`client` is null: a whole number is needed")?;
    let invoke = number(&fields, "invoke")?.ok_or("`invoke` is null: every operation has begun")?;
    let ret = number(&fields, "return")?;
    if let Some(ret) = ret.filter(|ret| *ret < invoke) {
        return Err(format!("it returned (at {ret}) before it was invoked (at {invoke})"));
    }
    let op = op(&fields)?;
    let key = match fields.remove("key") {
        Some(Value::String(key)) => key,
        Some(other) => return Err(format!("`key` is {other}: a string is needed")),
        None => return Err(missing("key")),
    };
    Ok(Operation { client, key, op, invoke: Nanos(invoke), ret: ret.map(Nanos) })
}

fn op(fields: &Map<String, Value>) -> Result<Op, String> {
    let name = match fields.get("op") {
        Some(Value::String(name)) => name.as_str(),
        Some(other) => return Err(unknown_op(other)),
        None => return Err(missing("op")),
    };
    Ok(match name {
        "read" => Op::Read { value: digest(fields, "value")? },
        "insert" => Op::Insert {
            value: digest(fields, "value")?.ok_or("`value` is null, but an insert writes a value")?,
        },
        "update" => Op::Update { value: digest(fields, "value")? },
        "delete" => Op::Delete,
        "rmw" => match (digest(fields, "value")?, digest(fields, "new")?) {
            (value, Some(new)) => Op::Rmw { value, new },
            // It found nothing to modify: all that is left of it is what it saw.
            (None, None) => Op::Read { value: None },
            (Some(_), None) => return Err("`new` is null, but this rmw read a value to modify".to_owned()),
        },
        _ => return Err(unknown_op(&fields["op"])),
    })
}

fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    match fields.get(name) {
        Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(format!("`{name}` is {value}: a whole number from 0 to 2^64 - 1 is needed")),
        },
        None => Err(missing(name)),
    }
}

fn digest(fields: &Map<String, Value>, name: &str) -> Result<Option<Digest>, String> {
    let value = match fields.get(name) {
        Some(Value::Null) => return Ok(None),
        Some(value) => value,
        None => return Err(missing(name)),
    };
    let digits =
        value.as_str().filter(|text| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit()));
    match digits.map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(digest)) => Ok(Some(digest)),
        _ => Err(format!("`{name}` is {value}: a string of 16 hex digits is needed, or null for absent")),
    }
}

fn missing(name: &str) -> String {
    format!("field `{name}` is missing")
}

fn unknown_op(op: &Value) -> String {
    format!("`op` is {op}: it must be \"read\", \"insert\", \"update\", \"delete\" or \"rmw\"")
}

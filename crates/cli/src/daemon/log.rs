//! The log of a daemon: what its operator must know, a line each, on standard error; as text, or as JSON for programs.
//!
//! Other crates say what there is to say through the facade of `tracing`; this is the only place that writes it. What must
//! always hold: every line has the time, the level, who says it and the rack's epoch as far as it is known; a line is one
//! write, so that lines of several processes do not mix; nobody who does not read it can stop the daemon.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fault::Fault;

/// The environment variable that says how much is written.
const LEVEL: &str = "RACKMEM_LOG";
const LEVELS: [(&str, LevelFilter); 5] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
];

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// One JSON document a line
    Json,
}

impl Format {
    /// As a flag says it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// How to write the log, as flags.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct LogArgs {
    /// How log lines are written to standard error. RACKMEM_LOG says which: off, error, warn, info (the default) or debug
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(super) log: Format,
}

impl LogArgs {
    /// Writes log lines from now on. `place` is who says them in this process.
    pub(super) fn begin(self, place: impl fmt::Display) -> Result<(), Fault> {
        let level = match std::env::var(LEVEL) {
            Ok(given) => level(&given)?,
            Err(_) => LevelFilter::INFO,
        };
        let (place, format) = (place.to_string(), self.log);
        let log = Log { place, format, level, epoch: AtomicU32::new(0), spans: AtomicU64::new(0) };
        tracing::subscriber::set_global_default(log)
            .map_err(|error| Fault::failed(format_args!("this process has a log already: {error}")))
    }
}

fn level(given: &str) -> Result<LevelFilter, Fault> {
    let known = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(given));
    known.map(|(_, level)| *level).ok_or_else(|| {
        let names = LEVELS.map(|(name, _)| name).join(", ");
        Fault::usage(format_args!("{LEVEL}={given} is no level of a log: set it to one of {names}"))
    })
}

/// Writes the lines.
struct Log {
    place: String,
    format: Format,
    level: LevelFilter,
    /// The last epoch that a line was about: those that know of none are of this one. 0: none yet.
    epoch: AtomicU32,
    /// Nobody uses spans here. They must differ all the same.
    spans: AtomicU64,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(epoch) = fields.epoch {
            self.epoch.store(epoch, Relaxed);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = time(now.as_secs(), now.subsec_millis());
        let level = event.metadata().level().as_str();
        let line = self.line(&time, level, &fields);
        // Whoever does not listen misses it.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1 + self.spans.fetch_add(1, Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Log {
    /// With its end.
    fn line(&self, time: &str, level: &str, fields: &Fields) -> String {
        let epoch = fields.epoch.unwrap_or_else(|| self.epoch.load(Relaxed));
        let (place, message) = (&self.place, &fields.message);
        let mut line = match self.format {
            Format::Text if epoch == 0 => format!("{time} {level:<5} {place}: {message}"),
            Format::Text => format!("{time} {level:<5} {place}: {message} epoch={epoch}"),
            Format::Json => format!(
                r#"{{"time":"{time}","level":"{}","place":{},"message":{},"epoch":{epoch}"#,
                level.to_lowercase(),
                Value::from(place.as_str()),
                Value::from(message.as_str()),
            ),
        };
        for (name, value) in &fields.others {
            // Writing to a string does not fail.
            let _ = match self.format {
                Format::Text => match value.as_str() {
                    Some(word) if !word.contains(|letter: char| letter.is_whitespace() || letter == '"') => {
                        write!(line, " {name}={word}")
                    }
                    _ => write!(line, " {name}={value}"),
                },
                Format::Json => write!(line, r#","{name}":{value}"#),
            };
        }
        line.push_str(if self.format == Format::Json { "}\n" } else { "\n" });
        line
    }
}

/// What an event says.
#[derive(Default)]
struct Fields {
    message: String,
    epoch: Option<u32>,
    others: Vec<(&'static str, Value)>,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "epoch" => self.epoch = u32::try_from(value).ok(),
            name => self.others.push((name, value.into())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.others.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.others.push((field.name(), value.into()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.others.push((name, format!("{value:?}").into())),
        }
    }
}

/// Seconds since 1970 as RFC 3339 has them, in UTC.
fn time(seconds: u64, millis: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(format: Format) -> Log {
        let place = "node 1".to_owned();
        Log { place, format, level: LevelFilter::INFO, epoch: AtomicU32::new(7), spans: AtomicU64::new(0) }
    }

    fn fields(epoch: Option<u32>) -> Fields {
        let others = vec![("node", 1.into()), ("why", "silent".into()), ("said", "no \"way\"".into())];
        Fields { message: "declared dead".to_owned(), epoch, others }
    }

    #[test]
    fn a_line_of_text_has_time_level_place_and_epoch() {
        assert_eq!(
            log(Format::Text).line("T", "WARN", &fields(Some(9))),
            "T WARN  node 1: declared dead epoch=9 node=1 why=silent said=\"no \\\"way\\\"\"\n"
        );
    }

    #[test]
    fn a_line_of_json_is_one_document_and_of_the_last_epoch_that_was_heard_of() {
        let line = log(Format::Json).line("T", "WARN", &fields(None));
        let document: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            document,
            serde_json::json!({
                "time": "T", "level": "warn", "place": "node 1", "message": "declared dead", "epoch": 7,
                "node": 1, "why": "silent", "said": "no \"way\"",
            })
        );
        assert_eq!(line.lines().count(), 1);
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.005Z"),
            (951_782_399, "2000-02-28T23:59:59.005Z"),
            (951_782_400, "2000-02-29T00:00:00.005Z"),
            (1_772_323_199, "2026-02-28T23:59:59.005Z"),
            (1_772_323_200, "2026-03-01T00:00:00.005Z"),
            (4_102_444_799, "2099-12-31T23:59:59.005Z"),
        ] {
            assert_eq!(time(seconds, 5), text);
        }
    }

    #[test]
    fn a_level_that_there_is_not_is_a_mistake_that_names_those_that_there_are() {
        assert_eq!(level("WARN").unwrap(), LevelFilter::WARN);
        let Err(Fault::Usage(said)) = level("loud") else { panic!("a usage mistake") };
        assert_eq!(
            said,
            "RACKMEM_LOG=loud is no level of a log: set it to one of off, error, warn, info, debug"
        );
    }
}

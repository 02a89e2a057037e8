//! Why the chip could not run a program.

use alloc::string::String;
use core::fmt;

/// The first rule found broken, with the names of those who break it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are the names and numbers of the message, which says what they are"
)]
pub enum BuildError {
    /// More fields than the PHV can name.
    TooManyFields { have: usize, most: usize },
    /// The fields are wider than the PHV.
    PhvTooWide { bits: u32, most: u32 },
    /// A field of 0 or more than 64 bits.
    FieldWidth { field: String, bits: u32 },
    /// A step names an array or a field that this program does not have.
    Unknown { step: String },
    /// Something is placed beyond the last stage.
    StageBeyondChip { what: String, stage: usize, stages: usize },
    /// A cell is wider than the stateful ALU.
    CellTooWide { array: String, bits: u32, most: u32 },
    /// An array without cells.
    EmptyArray { array: String },
    /// A step back: that takes a resubmission.
    StepBack { step: String, stage: usize, after: String, after_stage: usize },
    /// Two steps on one array.
    ArrayTwice { array: String },
    /// More programs than the array's ALU holds.
    TooManyPrograms { array: String, have: usize, most: usize },
    /// A value that picks a program, too large or used twice.
    BadSelector { array: String, value: u64, limit: u64 },
    /// A field is used that nobody sets.
    Undefined { step: String, field: String },
    /// A field is used before, or in the stage in which, another step writes it.
    UsedTooEarly { step: String, stage: usize, field: String, writer: String, writer_stage: usize },
    /// Instructions that run side by side, one of which would need another's result.
    Chained { step: String, field: String },
    /// Two writers of a field in one stage, whose gates do not exclude each other.
    WriteConflict { field: String, first: String, second: String, stage: usize },
    /// An output that does not fit its field.
    OutputTooNarrow { step: String, field: String, field_bits: u32, bits: u32 },
    /// A row whose matches do not correspond to the key, or a value that the key field cannot have.
    BadRow { table: String, row: usize },
    /// A key that is wider than the model matches.
    KeyTooWide { table: String, bits: u32, most: u32 },
    /// More actions than a table can name.
    TooManyRows { table: String, have: usize, most: usize },
    /// More arrays, tables, steps or instructions than the model can number.
    TooLarge,
    /// More register arrays in a stage than it has stateful ALUs.
    TooManyArrays { stage: usize, arrays: String, have: usize, most: usize },
    /// More tables in a stage than it holds.
    TooManyTables { stage: usize, have: usize, most: usize },
    /// A stage's memory is full.
    StageSram { stage: usize, largest: String, blocks: usize, most: usize },
    /// A stage's ternary memory is full.
    StageTcam { stage: usize, largest: String, blocks: usize, most: usize },
    /// The chip's memory is full.
    ChipSram { blocks: usize, most: usize },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyFields { have, most } => write!(f, "{have} PHV fields, where {most} can be named"),
            Self::PhvTooWide { bits, most } => write!(f, "the PHV fields take {bits} bits of {most}"),
            Self::FieldWidth { field, bits } => {
                write!(f, "field {field} has {bits} bits: 1 to 64 are possible")
            }
            Self::Unknown { step } => write!(f, "{step} names an array or a field of another program"),
            Self::StageBeyondChip { what, stage, stages } => {
                write!(f, "{what} is in stage {stage}, but the chip's {stages} stages end before it")
            }
            Self::CellTooWide { array, bits, most } => {
                write!(f, "array {array} has cells of {bits} bits: a stateful ALU handles 1 to {most}")
            }
            Self::EmptyArray { array } => write!(f, "array {array} has no cells"),
            Self::StepBack { step, stage, after, after_stage } => write!(
                f,
                "{step} in stage {stage} comes after {after} in stage {after_stage}: \
                 going back to an earlier stage needs a resubmission"
            ),
            Self::ArrayTwice { array } => {
                write!(
                    f,
                    "two steps access array {array}: a packet does one read-modify-write on it per pass"
                )
            }
            Self::TooManyPrograms { array, have, most } => {
                write!(f, "array {array} has {have} ALU programs: its stateful ALU holds {most}")
            }
            Self::BadSelector { array, value, limit } => {
                write!(f, "selector {value} of array {array} is used twice, or is not below {limit}")
            }
            Self::Undefined { step, field } => {
                write!(f, "{step} uses field {field}, which no step writes and the parser does not supply")
            }
            Self::UsedTooEarly { step, stage, field, writer, writer_stage } => write!(
                f,
                "{step} in stage {stage} uses field {field}, which {writer} writes in stage {writer_stage}: \
                 results are seen by later stages only"
            ),
            Self::Chained { step, field } => write!(
                f,
                "instructions of {step} run side by side, but one writes field {field} and another needs it"
            ),
            Self::WriteConflict { field, first, second, stage } => write!(
                f,
                "{first} and {second} both write field {field} in stage {stage}, \
                 and their gates do not exclude each other"
            ),
            Self::OutputTooNarrow { step, field, field_bits, bits } => {
                write!(f, "{step} puts out {bits} bits, field {field} has {field_bits}")
            }
            Self::BadRow { table, row } => {
                write!(f, "row {row} of table {table} does not fit the table's key")
            }
            Self::KeyTooWide { table, bits, most } => {
                write!(f, "the key of table {table} has {bits} bits: {most} are possible")
            }
            Self::TooManyRows { table, have, most } => {
                write!(f, "table {table} has {have} rows: {most} are possible")
            }
            Self::TooLarge => write!(f, "the program has more steps or instructions than can be numbered"),
            Self::TooManyArrays { stage, arrays, have, most } => {
                write!(f, "stage {stage} has {have} register arrays ({arrays}): it has {most} stateful ALUs")
            }
            Self::TooManyTables { stage, have, most } => {
                write!(f, "stage {stage} has {have} tables and arrays: it holds {most}")
            }
            Self::StageSram { stage, largest, blocks, most } => {
                write!(f, "stage {stage} needs {blocks} SRAM blocks of {most}; most of them for {largest}")
            }
            Self::StageTcam { stage, largest, blocks, most } => {
                write!(f, "stage {stage} needs {blocks} TCAM blocks of {most}; most of them for {largest}")
            }
            Self::ChipSram { blocks, most } => {
                write!(f, "the program needs {blocks} SRAM blocks, and may use {most}")
            }
        }
    }
}

impl core::error::Error for BuildError {}

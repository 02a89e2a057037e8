//! Why the command ends without success, in words for the person who typed it: what was wrong, where, and
//! what to do about it.

use std::fmt;
use std::process::ExitCode;

/// The end of a command that did not do all that was asked.
#[derive(Debug)]
pub enum Fault {
    /// The command line, or a file that it names, is wrong. Exit code 2.
    Usage(String),
    /// The run itself failed. Exit code 1.
    Failed(String),
    /// The run does not get on and cannot be ended otherwise. Exit code 3.
    Stuck(String),
    /// A machine of the protocol panicked. Exit code 4.
    Crashed(String),
    /// Ctrl-C; what there was has been printed. Exit code 130, as shells have it (128 + SIGINT).
    Interrupted,
    /// Whoever read the output has gone away (`rackmem ... | head`). Not worth a message.
    OutputClosed,
}

impl Fault {
    /// The exit code of a run that is stuck: tests and scripts tell it from one that is wrong.
    pub const STUCK: u8 = 3;

    /// A usage fault.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// A failure of the run.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }

    /// Says it on standard error, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                say!("error: {message}");
                ExitCode::from(2)
            }
            Self::Failed(message) => {
                say!("error: {message}");
                ExitCode::from(1)
            }
            Self::Stuck(message) => {
                say!("stuck: {message}");
                ExitCode::from(Self::STUCK)
            }
            Self::Crashed(message) => {
                say!("crash: {message}");
                ExitCode::from(4)
            }
            Self::Interrupted => {
                say!("stopped by Ctrl-C");
                ExitCode::from(130)
            }
            Self::OutputClosed => ExitCode::from(1),
        }
    }
}

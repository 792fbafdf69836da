//! Every exit code that moored has, and the errors that lead to them.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use crate::render;

/// How moored ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Ok,
    /// It could not be done.
    Failure,
    /// It was not understood.
    Usage,
    /// `run`: the server's own code, or 128 + the signal by which it died; or that it could not be started: 125 moored
    /// failed, 126 not executable, 127 not found.
    Server(u8),
}

impl Exit {
    /// `run` itself failed.
    pub(crate) const RUN_FAILED: Self = Self::Server(125);

    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Server(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what it should, in words for the one who typed it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of our output is gone: a normal end.
    BrokenPipe,
    /// Anything else.
    Told {
        /// What, without the leading `moored: `.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// The code to exit with.
        exit: Exit,
    },
}

impl Failure {
    /// Something could not be done; `what` ends "failed to …".
    pub(crate) fn to(what: impl Display) -> Self {
        Self::Told { message: format!("failed to {what}"), hint: None, exit: Exit::Failure }
    }

    /// Something was not understood.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::Told { message: message.to_string(), hint: None, exit: Exit::Usage }
    }

    /// With a hint.
    pub(crate) fn hint(mut self, text: impl Display) -> Self {
        if let Self::Told { hint, .. } = &mut self {
            *hint = Some(text.to_string());
        }
        self
    }

    /// With another code.
    pub(crate) fn exit(mut self, code: Exit) -> Self {
        if let Self::Told { exit, .. } = &mut self {
            *exit = code;
        }
        self
    }
}

/// Output that cannot be written is the only I/O error that is not given its own words where it happens.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::to(format_args!("write the output: {error}")),
        }
    }
}

/// Tells a failure on stderr, and gives the code to exit with.
pub(crate) fn tell(failure: &Failure) -> Exit {
    match failure {
        Failure::BrokenPipe => Exit::Ok,
        Failure::Told { message, hint, exit } => {
            render::say(&format!("moored: {message}"));
            if let Some(hint) = hint {
                render::say(&format!("\nhint: {hint}"));
            }
            *exit
        }
    }
}

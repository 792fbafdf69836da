//! Why a server was not started, as a value that names the thing and the fix.

use std::io;
use std::path::PathBuf;

use crate::owner::command::Command;
use crate::owner::strength::Layer;
use crate::owner::texts;
use crate::shared::board::{Board, Word, flag, stage};
use crate::sys;

/// Why a server was not started. Nothing is left of the attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such program.
    #[error("failed to start `{program}`: no such program{}", if program.contains('/') { "" } else { " in PATH" })]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// It is there, but cannot be executed.
    #[error("failed to execute `{program}`")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("failed to enter the working directory `{}`", path.display())]
    WorkingDirectory {
        /// As it was given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A string with a NUL in it, or a variable without a proper name.
    #[error("failed to pass on {what}: {why}")]
    InvalidInput {
        /// Which one.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Too many open files, in this process or on this machine.
    #[error("failed to start `{program}`: out of file descriptors (raise `ulimit -n`, or close some)")]
    OutOfFiles {
        /// As it was given.
        program: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// Too many processes, of this user or on this machine.
    #[error(
        "failed to start `{program}`: out of processes (raise `ulimit -u` or the pids limit, or end some)"
    )]
    OutOfProcesses {
        /// As it was given.
        program: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// A layer that was required cannot be had.
    #[error("failed to contain `{program}` by {layer}: {why}")]
    LayerUnavailable {
        /// As it was given.
        program: String,
        /// Which layer.
        layer: Layer,
        /// Why not.
        why: String,
    },
    /// A kept program and a layer that cannot spare a process.
    #[error("failed to contain `{program}`: {layer} cannot spare anybody, so nothing can be kept")]
    KeepImpossible {
        /// As it was given.
        program: String,
        /// Which layer.
        layer: Layer,
    },
    /// The session had to be written down in a given folder, and could not be.
    #[error("failed to write the session's record in `{}`", folder.display())]
    Record {
        /// Where.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// `/proc` shows the processes of another PID namespace, so that our descendants could not be told from other processes.
    #[error(
        "failed to start `{program}`: /proc belongs to another PID namespace (mount it anew: `mount -t proc proc /proc`)"
    )]
    ForeignProc {
        /// As it was given.
        program: String,
    },
    /// `/proc` is mounted with `subset=pid`: it shows processes, and not the boot that they belong to.
    #[error(
        "failed to start `{program}`: /proc shows processes only (it is mounted with `subset=pid`), and \
         /proc/sys/kernel/random/boot_id is not in it (mount it anew: `mount -t proc proc /proc`)"
    )]
    PartialProc {
        /// As it was given.
        program: String,
    },
    /// The limit on the size of files is below what the guardians' memory takes. To try would be to get a SIGXFSZ.
    #[error(
        "failed to start `{program}`: files may have {limit} bytes at most, and the guardians need {needed} (raise `ulimit -f`)"
    )]
    FileSizeLimit {
        /// As it was given.
        program: String,
        /// What `RLIMIT_FSIZE` allows.
        limit: u64,
        /// What it takes.
        needed: u64,
    },
    /// The guardians could not be set up.
    #[error("failed to set up the guardians of `{program}`")]
    Guardian {
        /// As it was given.
        program: String,
        /// Why not.
        source: io::Error,
    },
}

impl StartError {
    /// The exit code that a wrapper should end with: 127 not found, 126 not executable, 125 for everything else.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}

pub(crate) fn resource_error(command: &Command, source: io::Error) -> StartError {
    let program = command.name();
    match sys::Shortage::of(&source) {
        sys::Shortage::Files => StartError::OutOfFiles { program, source },
        sys::Shortage::Processes => StartError::OutOfProcesses { program, source },
        sys::Shortage::Other => StartError::Guardian { program, source },
    }
}

/// What the guardians wrote on the board before they gave up.
pub(crate) fn stage_error(command: &Command, board: Board<'_>) -> StartError {
    let program = command.name();
    let errno = i32::try_from(board.get(Word::StageError)).unwrap_or(0);
    let source = io::Error::from_raw_os_error(errno);
    // It was killed on its way, before it could say anything.
    const ESRCH: i32 = 3;
    if matches!(errno, 0 | ESRCH) {
        return StartError::Guardian { program, source: io::Error::other("a guardian was killed") };
    }
    let short_of_processes = sys::Shortage::of(&source) == sys::Shortage::Processes;
    let layer =
        |layer| StartError::LayerUnavailable { program: program.clone(), layer, why: source.to_string() };
    match board.get(Word::Stage) {
        stage::FORK_INNER if board.has(Word::Flags, flag::STRICT) && !short_of_processes => {
            layer(Layer::Pidns)
        }
        stage::NAMESPACE => layer(Layer::Pidns),
        stage::ENTER_LEAF if !short_of_processes => layer(Layer::Cgroup),
        stage::SEAL if source.kind() == io::ErrorKind::ArgumentListTooLong => {
            let why = "16 domains lie inside one another already, and the kernel allows no more".into();
            StartError::LayerUnavailable { program, layer: Layer::Landlock, why }
        }
        stage::SEAL => layer(Layer::Landlock),
        stage::CWD => StartError::WorkingDirectory { path: command.cwd.clone().unwrap_or_default(), source },
        stage::EXEC if is_absence(command, &source) => StartError::NotFound { program },
        // A script that is there, but whose interpreter is not, is "not found" to the kernel.
        stage::EXEC if source.kind() == io::ErrorKind::NotFound => {
            let source =
                io::Error::new(io::ErrorKind::NotFound, "its interpreter (after `#!`) does not exist");
            StartError::NotExecutable { program, source }
        }
        stage::EXEC => StartError::NotExecutable { program, source },
        _ => resource_error(command, source),
    }
}

/// Whether the program is nowhere, rather than somewhere and refused. A folder in PATH that we may not search is a refusal
/// to the kernel, and hides nothing that we could have run.
fn is_absence(command: &Command, error: &io::Error) -> bool {
    let by_name = !command.program.as_encoded_bytes().contains(&b'/');
    let absent = match error.kind() {
        io::ErrorKind::NotFound => true,
        io::ErrorKind::PermissionDenied => by_name,
        _ => false,
    };
    absent && !texts::program_exists(command)
}

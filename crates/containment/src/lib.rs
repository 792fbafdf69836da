//! Nothing I start outlives me.
//!
//! A [`Command`] starts a server *contained*: everything that it ever starts, however it hides (own session, double
//! fork, cleared environment, closed files), is ended with it, within a stated bound, and the emptiness is proven. It
//! does not matter how the end comes: [`Contained::end`], a drop, a panic, `process::exit`, or a SIGKILL of this process.
//! No process outside of the session is ever signalled.
//!
//! ```
//! use moored_containment::{Command, Ladder, Stdio};
//!
//! // Leaves a daemon behind, in a session of its own, as leaks do.
//! let mut server = Command::new("sh").args(["-c", "setsid sleep 600 & cat"]).stdin(Stdio::Pipe).spawn()?;
//! let report = server.end(Ladder::default())?;
//! assert!(report.verified, "the daemon is gone, and that is proven");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//!
//! Two small guardian processes stand between this program and the server. Both are subreapers, so that whatever loses
//! its parent falls to them; each watches the other and this program by pidfd. Any one of the three can be SIGKILLed,
//! and the tree still ends. This program itself is never a subreaper, has no thread and no signal handler of ours, and
//! keeps the exit statuses of its own children.
//!
//! # What each layer can do alone
//!
//! The guardians are always there; the layers are what they can use. Which ones hold a session is its [`Strength`]. A
//! plain user has `guardian`; root, or a user in a delegated cgroup, `cgroup` too; [`Command::sealed`] adds `landlock`,
//! [`Command::strict`] adds `pidns`. This table is compared with what is seen by the tests:
//!
//! <!-- layers:begin -->
//! | held by | child | `setsid` daemon | hopping storm | all of ours killed at once |
//! |---|---|---|---|---|
//! | process group | ended | escapes | escapes | ended by the next sweep |
//! | guardian | ended, proven | ended, proven | ended, proven | ended by the next sweep |
//! | cgroup | ended | ended | ended | ended by the next sweep |
//! | landlock | ended | ended | ended | ended by the next sweep |
//! | pidns | ended, proven | ended, proven | ended, proven | ended |
//! <!-- layers:end -->
//!
//! "Proven" means that the kernel itself said so in a way that no race can spoil; see [`Proof`].
//!
//! # Limits
//!
//! - Linux 5.4 or newer, x86-64; `cgroup` wants 5.14, `landlock` 6.12 and a user other than root, `pidns` user namespaces or
//!   root.
//! - A descendant that became another user (setuid root) cannot be signalled by a plain user: it is a
//!   [survivor](EndReport::survivors). So is a task in uninterruptible sleep.
//! - Work that is handed to another daemon (systemd-run, at, cron, D-Bus, ssh, a container engine) is not a descendant.
#![deny(rustdoc::broken_intra_doc_links)]

mod owner;
pub mod process;
mod record;
#[allow(dead_code, reason = "compiled into the guardian too, which uses the rest")]
mod shared;
mod sweep;
#[allow(unsafe_code, reason = "the one room that talks to the kernel; each use says what makes it sound")]
mod sys;

#[cfg(feature = "tokio")]
pub use owner::aio;
pub use owner::command::{Command, Recording};
pub use owner::contained::Contained;
pub use owner::link::EndError;
pub use owner::report::{
    EndReason, EndReport, EndedBy, Proof, ServerExit, Step, StepName, Survivor, SurvivorReason,
};
pub use owner::signaller::Signaller;
pub use owner::signals::unblock_signals;
pub use owner::start_error::StartError;
pub use owner::stdio::{Stderr, Stdin, Stdio, Stdout};
pub use owner::strength::{Findable, Layer, Strength, StrengthLevel, Use};
pub use process::{BootId, ParseIdentityError, Process, ProcessIdentity, ProcessTable};
pub use record::cookie::{ParseSessionIdError, SessionId};
pub use record::passwd::passwd_home;
pub use record::runtime_dir::{FoundRecord, RuntimeDir};
pub use record::session_record::Record;
pub use shared::ladder::{Ladder, Rung};
pub use sweep::execution::{SweepReport, SweptSession, sweep};

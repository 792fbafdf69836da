//! Nothing I start outlives me.
//!
//! A [`Command`] starts a server *contained*: everything that it ever starts, however it hides (own session, double
//! fork, cleared environment, closed files), is ended with it, within a stated bound, and the emptiness is proven. It
//! does not matter how the end comes: [`Contained::end`], a drop, a panic, `process::exit`, or a SIGKILL of this process.
//! Nobody else is ever signalled.
#![deny(rustdoc::broken_intra_doc_links)]

#[cfg(feature = "tokio")]
pub mod aio;
#[allow(dead_code, reason = "compiled into the guardian too, which uses the rest")]
mod board;
mod command;
mod contained;
mod cookie;
mod identity;
#[allow(dead_code, reason = "compiled into the guardian too, which uses the rest")]
mod ladder;
mod link;
mod record;
mod report;
mod runtime_dir;
mod start;
mod start_error;
mod stat;
mod stdio;
mod strength;
mod sweep;
#[allow(unsafe_code, reason = "the one room that talks to the kernel; each use says what makes it sound")]
mod sys;
mod table;
mod texts;

pub use command::{Command, Recording};
pub use contained::Contained;
pub use cookie::{ParseSessionIdError, SessionId};
pub use identity::{BootId, ParseIdentityError, ProcessIdentity};
pub use ladder::{Ladder, Rung};
pub use link::EndError;
pub use record::Record;
pub use report::{
    EndReason, EndReport, EndedBy, Proof, ServerExit, Step, StepName, Survivor, SurvivorReason,
};
pub use runtime_dir::{FoundRecord, RuntimeDir};
pub use start_error::StartError;
pub use stdio::{Stderr, Stdin, Stdio, Stdout};
pub use strength::{Findable, Layer, Strength, StrengthLevel, Use};
pub use sweep::{SweepReport, SweptSession, sweep};
pub use table::{Process, ProcessTable};

//! A connection manager for Rust MCP clients that cannot leak.
//!
//! A client that keeps its connections in clones and reference counts ends a server when the last clone is gone, which may
//! be never: replace the manager while a call is in flight, and a whole generation of processes stays. Here the life of a
//! process belongs to one value, the [`ServerSet`]. Everything else (handles, leases, calls in flight) may be cloned, kept
//! and forgotten, and holds nothing alive.
//!
//! ```
//! use moored_client::{ServerSet, ServerSpec, SetOptions};
//! use rmcp::model::CallToolRequestParams;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let spec = ServerSpec::new("echo", "sh").arg("examples/echo_server.sh");
//! let set = ServerSet::connect([spec], SetOptions::default()).await?;
//! let echo = set.server("echo").expect("it came up");
//! echo.call_tool(CallToolRequestParams::new("echo")).await?;
//!
//! drop(set);   // every process is gone when this returns
//! assert!(echo.is_ended());
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`ServerSet`]: connect, replace, restart, shut down.
//! - [`ServerSpec`] and [`SetOptions`]: what to run and how to treat it: lazy start, idle stop, restart with back-off, limits.
//! - [`Handle`] and [`Lease`]: calling a server.
//! - [`Event`] and [`Events`]: what happened, as a stream; also what the drop of a set did.
//! - [`Registration`]: `moored ps`, `inspect` and `stop` find the servers of a set, unless it is switched off.
//! - [`ContainedTransport`]: one contained server as an rmcp transport, the drop-in for `TokioChildProcess`.
//!
//! # Who owns what
//!
//! | value | holds | when it goes |
//! |---|---|---|
//! | [`ServerSet`] | every process | all of them end, synchronously |
//! | [`Handle`] | a name | nothing |
//! | [`Lease`], a call in flight | a use | the server may sleep, or be replaced, sooner |
//! | [`ContainedTransport`] | one process | it ends, synchronously |
//!
//! # Limits
//!
//! - What a process started and how it is ended is containment's matter, with the limits named there
//!   ([`moored_containment`]).
//! - `mem::forget` of a set, or a cycle of reference counts around it, keeps its processes until this program ends.
//! - Dropping a set blocks its thread until the servers are gone; on a runtime, [`ServerSet::shutdown`] is kinder.
//! - A server is served on the runtime on which it was started. When that is shut down its handles say
//!   [`Unattended`](EndedWhy::Unattended), and its process stays until it is replaced or the set ends.
//! - In a fork of the host without exec, the set belongs to the parent: dropping it there does nothing.
//! - A call has no time limit of its own: drop its future to give up. What a server says is bounded by rmcp to 16 MiB a
//!   message; how many messages the host's own handler works on at a time is not bounded.
#![deny(rustdoc::broken_intra_doc_links)]

mod event;
mod handle;
mod handler;
mod server;
mod set;
mod spec;
mod transport;

pub use event::{Event, EventSender, Events, events};
pub use handle::{CallError, Handle, Lease};
pub use handler::AnyHandler;
pub use moored_launch::BackOff;
pub use server::{ConnectError, Connection, EndedWhy, Outcome, Registration};
pub use set::{
    DuplicateName, EndedServer, FailedServer, ReplaceError, Replaced, Replacing, ServerLimit, ServerSet,
    SetOptions,
};
pub use spec::{Restart, ServerSpec, Start, Stderr};
pub use transport::{ContainedTransport, TransportEnd};

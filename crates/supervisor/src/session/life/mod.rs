//! What a session does about what happens to it: pure and total. No clock, no process, no message.
//!
//! ```text
//!          room made                started                 EOF, client gone, TERM, stop,
//!   Queued ─────────▶ Starting ──────────────▶ Serving ─────────────────────────────────▶ Ending ── tree gone ──▶ Ended
//!     ▲  ▲             ▲    ▲                  │  │  │        the server exited             ▲                      ▲
//!     │  │             │    │                  │  │  └ SIGINT ▶ Interrupted ─ exited, 1 s ──┤                      │
//!     │  │  time is up │    │            idle, │  │ crashed                                 │ EOF, TERM, stop      │
//!     │  │  or EOF     │    │       hibernate ▼  ▼                                         │ in any other phase:  │
//!     │  │      BackingOff  │     FallingAsleep  Crashed                                    │ Ending while there   │
//!     │  │             ▲    │            │ tree    │ tree gone                              │ is a tree,           │
//!     │  │             │    │            ▼ gone    │                                        └ else ─────────────────┘
//!     │  └─ a message ─┼────┴──────── Asleep       │
//!     │                │  a message      ▲ a minute is over
//!  a limit is set      └─────────────────┼─────────┤
//!                                     Tripped ◀────┘ five crashes in a row
//! ```
//!
//! - **Queued**: `--max-instances` is set, and other instances are asked to make room. Without a limit this phase is skipped. A client that leaves
//!   before there is room for a first start takes the session out of the queue (**Dequeued**, not in the picture).
//! - **Draining** is no phase: it is [`ServerLife::is_draining`], beside every phase. The client has closed its end and still
//!   reads, and calls of its are unanswered. They are answered first, in whatever phase the server is: a sleeping one is
//!   woken, one that backs off is started at once. The drain timer bounds that; then, or when the last call is answered, the
//!   session ends.
//! - **Ending**: the ladder of containment runs, and its proof is waited for. A second reason can take the ladder further,
//!   never back, and the first reason stays.
//! - **Doomed** (not in the picture): the end came while the server was being started. It is ended as soon as it is there.
//! - **Interrupted**: ^C was passed on to the server, which has a second to end by it; then Ending.
//! - **FallingAsleep → Asleep**: the tree is ended as at the end, but the client's connection stays. The next message starts
//!   the server again.
//! - **Crashed → BackingOff → Starting**: with `--restart on-crash` only. A server that crashes again and again is not started
//!   for a minute (**Tripped**): calls are answered with an error at once. A session that begins while its server crashes too
//!   often begins there.
//!
//! `vocabulary` has the phases, triggers and orders; `machine` is the state machine, with `transitions` for the phases that need
//! nothing else of it; `bounds` is the time that calls in flight may take of a ladder.

mod bounds;
mod machine;
#[cfg(test)]
mod tests;
mod transitions;
mod vocabulary;

pub(super) use bounds::{ONE_SHOT, draining_time, within_bound};
pub(super) use machine::ServerLife;
pub(super) use vocabulary::{Begin, Exit, Limit, Order, Phase, Signal, Timer, Trigger};

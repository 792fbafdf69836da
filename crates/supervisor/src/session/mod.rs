//! The life of one `run`: the client's pipe on one side, a server that may sleep, wake and crash on the other.
//!
//! ```text
//!             started               EOF, calls in flight
//!   Starting ─────────▶ Serving ───────────────────────▶ Draining
//!      ▲ ▲               │ │ │ EOF, client gone, TERM,      │ answered, or too long
//!      │ │               │ │ │ stop, the server exited      ▼
//!      │ │       idle …  │ │ └──────────────────────────▶ Ending ── tree gone ──▶ Ended
//!      │ │               ▼ │ crashed                        ▲                      ▲
//!      │ │   FallingAsleep └────▶ Crashed                   │ EOF, TERM, stop      │
//!      │ │     │ tree gone          │ tree gone             │ in any of these:     │
//!      │ │     ▼                    ▼                       │ Ending while there   │
//!      │ └── Asleep ◀─ cooled ─ Tripped ◀─ too often ─ BackingOff ── is a tree, else┘
//!      │  a message                                         │ time is up
//!      └────────────────────────────────────────────────────┘
//! ```
//!
//! - **Serving → Draining**: the client has closed our stdin but still reads: the server's stdin is closed at once, and
//!   calls in flight are answered before the ladder begins. The tree is gone by the bound all the same, unless whoever
//!   wrote them has left (a shell's pipeline, a file): then only the answer is waited for, for half a minute at most.
//! - **Ending**: the ladder of containment runs, and its proof is waited for. A second reason can take the ladder further,
//!   never back, and the first reason stays.
//! - **Interrupted** (not in the picture): ^C was passed on to the server, which has a second to end by it; then Ending.
//! - **FallingAsleep → Asleep**: the tree is ended as at the end, but the client's pipe stays. The next message starts the
//!   server again, and what it had been told is said again before that message is passed on.
//! - **Crashed → BackingOff → Starting**: with `--restart on-crash` only. Calls in flight are answered with an error. A
//!   server that crashes again and again is not started for a while (**Tripped**): calls are answered with an error at
//!   once.
//!
//! `state` decides and is pure; `driver` is the one task that obeys it, with `happened` for what it waits for, `traffic` for
//! what the bytes mean, `asked` for the operator and the clock, `telling` for events and what comes back from threads,
//! `half_closes` for a server that closes one of its pipes, `starting` and `ending`. The rest of the room is what the driver uses: `keeper` holds the contained server, `pump` moves
//! the bytes between our own files and `server_files`, `client` finds out who asked, `distant_clients` whether it is one that is no ancestor of ours, `door` answers the control socket,
//! `crashes` remembers crashes across `run`s, `limit` keeps the instances few, `pid_file` and `code` look after the PID file
//! and the program on disk.

mod aside;
mod asked;
mod client;
mod code;
mod crashes;
mod direct;
mod distant_clients;
mod door;
mod driver;
mod ending;
mod half_closes;
mod happened;
mod info;
mod keeper;
mod limit;
mod pid_file;
mod pump;
mod server_files;
mod signals;
mod start;
mod starting;
mod state;
mod telling;
mod traffic;

pub use limit::NoRoom;
pub use pid_file::remove_if_dead as remove_dead_pid_file;
pub use start::{RunError, RunOutcome, Surroundings, run};

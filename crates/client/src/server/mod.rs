//! One server of a set, from its first start to its end for good.
//!
//! - `owner`: its one task; what happens between two processes. `one_life`: one process, from start to end.
//! - `life`: pure: what comes after a process is over, with the state diagram.
//! - `launch`: from a spec to a process that has answered `initialize`.
//! - `process_hold`: holds one process so that the task can wait for it and the set can end it without the task.
//! - `registration`: the file and control socket of each process, for `moored ps`, `inspect` and `stop`.
//! - `slot`: the state that handles, the set and the task share. It leads to no process.
//!
//! Which servers there are, and when they are replaced, is decided in [`crate::set`].

mod launch;
mod life;
mod one_life;
mod owner;
mod process_hold;
mod registration;
mod slot;

pub use launch::ConnectError;
pub(crate) use launch::{Room, SILENCE, rooms};
pub use life::EndedWhy;
pub(crate) use owner::{Finished, Owner};
pub use process_hold::Outcome;
pub(crate) use process_hold::{ProcessHold, end_all_blocking};
pub use registration::Registration;
pub use slot::Connection;
pub(crate) use slot::{Live, Order, Phase, Slot, SlotState, Take};

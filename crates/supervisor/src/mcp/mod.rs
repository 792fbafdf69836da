//! The few MCP exchanges that a session itself takes part in: knowing what is in flight, saying again after a wake what
//! had been said before, the info tool, and errors in the server's stead. All of it is pure: lines in, lines out.

mod answer;
pub(crate) mod info_tool;
mod listens;
mod replay;
mod talk;
mod tasks;

pub(crate) use answer::{Failure, error_line};
pub(crate) use replay::{Replay, Step};
pub(crate) use talk::{ServerSaid, Talk, ids_in_batch};

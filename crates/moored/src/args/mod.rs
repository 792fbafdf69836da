//! What was typed: the verbs and their options. Each flag of `run` is defined once, in `run_flags`: its name, help, way of
//! writing and default; the command line, the `MOORED_*` variable, the key of a settings file, `config show`, the schema and
//! the completions all come from there. What the values mean together is `settings`' affair.
//!
//! To add a flag to `run`: an entry in `run_flags`, and a line in `settings/run.rs` that puts its value where it belongs. A
//! command that shares flags with another names them in its own list.
//!
//! - `verbs`: the verbs, and the options that are no settings;
//! - `flag`: what a flag is, and how clap gets to know it;
//! - `run_flags`: the flags of `run`; those about a server's life are for every command that starts servers;
//! - `global_flags`: the flags of every command;
//! - `units`: durations, sizes and switches as people write them.

mod flag;
mod global_flags;
pub(crate) mod run_flags;
mod units;
mod verbs;

pub(crate) use flag::{AnyFlag, Flag, Kind, Offered, TypedValues};
pub(crate) use global_flags::{GLOBAL, GlobalFlags, LOG_FORMAT, LOG_LEVEL, LogFormat};
pub(crate) use run_flags::{RUN, RunFlags};
pub(crate) use units::{IdleText, duration};
pub(crate) use verbs::{
    ConfigFile, ConfigVerb, DemoPart, EventsArgs, InspectArgs, LogsArgs, PsArgs, RunArgs, StopArgs, Typed,
    Verb, written_out,
};

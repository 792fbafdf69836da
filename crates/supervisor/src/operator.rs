//! Every verb that an operator has, once: the command line, the gateway and the tools only dress what comes from here.
//! Prints nothing, and signals nobody: whoever is to end is asked over its own control socket.
//!
//! - `row`: what is shown of a server, in the form in which programs read it.
//! - `look`: what is alive: the runtime folder ⨝ the answers of each `run` ⨝ the process table.
//! - `find`: who is meant by an id, the beginning of one, or a name (pure).
//! - `stop`: ending, and seeing for oneself that it is so.
//! - `history`: what has been, from the ledger.
//! - `processes`: the few facts of `/proc` that the process table does not have.

mod find;
mod history;
mod look;
mod processes;
mod row;
mod stop;

pub use find::{FindError, Named, find};
pub use history::{History, HistoryError, cause};
pub use look::{Details, Live, Operator};
pub use row::{ClientRow, ContainmentRow, Origin, ProcessRow, ServerRow, Verdict};
pub use stop::{StopOutcome, Stopped};

use std::io;
use std::path::PathBuf;

/// An operator could not look.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The folder of live sessions cannot be read.
    #[error("read the folder of live sessions `{folder}`: {source}")]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The process table cannot be read.
    #[error("read the process table: {0}")]
    Table(io::Error),
}

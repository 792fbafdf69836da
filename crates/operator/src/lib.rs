//! Every verb that an operator has, once: list, inspect, stop, history, logs. The command line, the gateway and the tools
//! only dress what comes from here. Prints nothing, and ends nothing by a signal: a run that is to end is asked over its
//! own control socket.
//!
//! | file | owns |
//! |---|---|
//! | `operator` | whose servers: the folders of live sessions, the store of history |
//! | `row` | what is shown of a server, in the form in which programs read it |
//! | `look` | what is alive: the runtime folder, the answers of each run, the process table |
//! | `find` | which server is meant by an id, the beginning of one, or a name (pure) |
//! | `list` | all of them, also those that have ended |
//! | `target` | all that is known of the one that is meant, and where its log is |
//! | `stop` | ending, and seeing for oneself that it is so |
//! | `history` | what has been, from the ledger |
//! | `processes` | the few facts of `/proc` that the process table does not have |
#![deny(rustdoc::broken_intra_doc_links)]

mod find;
mod history;
mod list;
mod look;
mod operator;
mod processes;
mod row;
mod stop;
mod target;

pub use find::{FindError, Named, find};
pub use history::{History, HistoryError, cause};
pub use list::{ListError, Listing, Which};
pub use look::{Details, Live};
pub use operator::{Operator, OperatorError};
pub use row::{ClientRow, ContainmentRow, Origin, ProcessRow, ServerRow, Verdict};
pub use stop::{StopOutcome, Stopped};
pub use target::{FoundLog, Inspected, TargetError};

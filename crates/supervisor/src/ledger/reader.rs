//! How a command that shows history opens it: with what others could not write, and with what there is to say about it.

use std::path::Path;

use super::{LedgerError, SqliteLedger, import_spool};
use crate::places::StateDir;

/// Opens history to read it. What was spooled is taken in first; the texts say what went wrong with that, and whether
/// the history had to be begun anew.
///
/// # Errors
/// If there is none and none can be made.
pub fn open_to_read(state: &StateDir, spool: &Path) -> Result<(SqliteLedger, Vec<String>), LedgerError> {
    let (mut ledger, warning) = SqliteLedger::open_or_begin_anew(state)?;
    let mut warnings: Vec<String> = warning.into_iter().collect();
    if let Err(error) = import_spool(spool, &mut ledger) {
        warnings.push(format!("what others could not write was not taken in: {error}"));
    }
    Ok((ledger, warnings))
}

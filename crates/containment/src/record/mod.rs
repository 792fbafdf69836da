//! What is on record of a live session, so that it can be found when all of its keepers were killed.
//!
//! - `session_record`: the text of a record;
//! - `runtime_dir`: the folder of records, and the lock on each;
//! - `cookie`: the mark that every process of a session carries;
//! - `passwd`: a user's home where `$HOME` is not to be trusted.
//!
//! What is done about a record whose owner and guardians are dead is in `sweep/`.

pub(crate) mod cookie;
pub(crate) mod passwd;
pub(crate) mod runtime_dir;
pub(crate) mod session_record;

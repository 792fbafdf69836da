//! What a crash of everything left: sessions whose owner and guardians are dead are found by their records, and ended.
//!
//! - `life`: whether a session still has an owner or a guardian;
//! - `look`: one look at all processes;
//! - `plan`: which of them a sweep is about, pure;
//! - `execution`: ending them, `on_end`, and the report.

pub(crate) mod execution;
pub(crate) mod life;
pub(crate) mod look;
pub(crate) mod plan;

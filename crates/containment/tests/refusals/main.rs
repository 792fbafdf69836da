//! What cannot be started is refused with a reason, and nothing is left of the attempt.
//!
//! - `commands`: a command that makes no sense;
//! - `shortages`: too few files, too few processes, files that may not grow;
//! - `images`: guardians that cannot be executed;
//! - `layers`: layers that fail half-way;
//! - `folders`: records that cannot be written.

#![expect(clippy::disallowed_methods, reason = "parts under a mark, which ends what is left of them")]

mod commands;
#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod folders;
mod images;
mod layers;
mod shortages;

use common::part::Part;

/// Panics if anybody or anything is left of a part.
#[track_caller]
fn assert_clean(part: &Part) {
    assert_eq!(part.mark.alive(), []);
    let leaves = part.group.as_ref().map(|group| group.leaves()).unwrap_or_default();
    assert!(leaves.is_empty(), "{leaves:?}");
}

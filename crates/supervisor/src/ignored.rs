//! Failures that change nothing: the work goes on, and `--log-level debug` tells.

use std::fmt::Display;

/// Says what could not be done. For failures that are no surprise to the caller, and weaken no promise.
pub(crate) fn ignore<T, E: Display>(what: &'static str, result: Result<T, E>) {
    if let Err(error) = result {
        tracing::debug!(%error, what, "ignored a failure");
    }
}

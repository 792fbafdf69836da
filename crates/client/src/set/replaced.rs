//! What became of the servers of a generation: the values that `connect`, `replace` and `shutdown` hand out.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use super::plan::DuplicateName;
use crate::server::{ConnectError, Outcome};

/// A server that did not come up. What there was of it has been ended.
///
/// ```
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let brief = ServerSpec::new("brief", "sh").args(["-c", "exit 7"]);
/// let set = ServerSet::connect([brief], SetOptions::default()).await?;
/// let failed = &set.failures()[0];
/// assert_eq!(failed.to_string(), "`brief` did not come up: it ended by itself (exit code 7)");
/// assert!(failed.outcome.as_ref().is_some_and(|outcome| outcome.as_ref().is_ok_and(|report| report.verified)));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FailedServer {
    /// Its name.
    pub name: String,
    /// What was wrong.
    pub error: Arc<ConnectError>,
    /// How its process ended, if there was one.
    pub outcome: Option<Outcome>,
}

impl fmt::Display for FailedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` did not come up: {}", self.name, self.error)?;
        let mut source = self.error.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// A server that was ended.
///
/// ```
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let replaced = set.replace([]).await?;
/// assert_eq!(replaced.ended[0].name, "echo");
/// assert!(replaced.ended[0].outcome.is_some(), "it had a process");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EndedServer {
    /// Its name.
    pub name: String,
    /// How its process ended; `None` if it had none, because it slept, or if it was ended with the set meanwhile.
    pub outcome: Option<Outcome>,
}

/// What a replacement did.
///
/// ```
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let replaced = set.replace([]).await?;
/// let ended = replaced.ended[0].outcome.clone().expect("it had a process")?;
/// assert!(ended.verified && ended.survivors.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Replaced {
    /// Servers that are the same as before, process and all.
    pub kept: Vec<String>,
    /// Servers that are new.
    pub started: Vec<String>,
    /// Servers that are gone.
    pub ended: Vec<EndedServer>,
    /// Servers that did not come up; see [`Replacing::WhatComesUp`](crate::Replacing::WhatComesUp).
    pub failed: Vec<FailedServer>,
}

/// Why nothing was replaced. The servers are as they were before.
///
/// ```
/// use moored_client::ReplaceError;
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let refused = set.replace([ServerSpec::new("missing", "no-such-program")]).await;
/// assert!(matches!(refused, Err(ReplaceError::Failed { failed }) if failed[0].name == "missing"));
/// assert!(set.server("echo").is_some_and(|echo| !echo.is_ended()), "it serves on");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// New servers did not come up; see [`Replacing::AllOrNothing`](crate::Replacing::AllOrNothing).
    #[error("failed to replace: {}", causes(failed))]
    Failed {
        /// Those.
        failed: Vec<FailedServer>,
    },
    /// Two servers of one name.
    #[error("failed to replace")]
    Duplicate(#[from] DuplicateName),
    /// The set is closed.
    #[error("failed to replace: the set is closed")]
    Closed,
}

fn causes(failed: &[FailedServer]) -> String {
    failed.iter().map(FailedServer::to_string).collect::<Vec<_>>().join("; ")
}

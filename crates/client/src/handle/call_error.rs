//! Why a call has no answer: what a host is told, and can act on.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceError;

use crate::server::{ConnectError, EndedWhy};

/// Why a call has no answer.
///
/// ```
/// use moored_client::{CallError, EndedWhy};
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let echo = set.server("echo").expect("it came up");
/// drop(set);
/// let refused = echo.list_all_tools().await.expect_err("it has ended");
/// assert_eq!(refused.to_string(), "failed to call `echo`: the server was ended: its set was dropped");
/// assert!(matches!(refused, CallError::Ended { why: EndedWhy::Dropped, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server was ended for good. [`ServerSet::server`](crate::ServerSet::server) has the one that serves now, if any.
    #[error("failed to call `{name}`: the server was ended: {why}")]
    Ended {
        /// Which server.
        name: String,
        /// What ended it.
        why: EndedWhy,
    },
    /// The server ended during the call. It is restarted if its spec says so; the call may have had an effect.
    #[error("failed to call `{name}`: the server ended during the call")]
    Lost {
        /// Which server.
        name: String,
    },
    /// The server does not come up, and is not tried again yet.
    #[error("failed to call `{name}`: the server is down, and is tried again in {retry_in:?}")]
    Down {
        /// Which server.
        name: String,
        /// When it is tried again.
        retry_in: Duration,
        /// What was wrong the last time.
        #[source]
        cause: Arc<ConnectError>,
    },
    /// The set has no server of that name.
    #[error("there is no server `{name}` in the set ({})", known_text(known))]
    Unknown {
        /// That name.
        name: String,
        /// The servers that it has.
        known: Vec<String>,
    },
    /// The server's own answer is an error, or is not understood.
    #[error("failed to call `{name}`")]
    Service {
        /// Which server.
        name: String,
        /// What came back.
        #[source]
        error: ServiceError,
    },
}

fn known_text(known: &[String]) -> String {
    if known.is_empty() {
        return "it has none".to_owned();
    }
    let names: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("it has {}", names.join(", "))
}

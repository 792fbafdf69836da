//! The use of a server: counted while it lasts, and told when there is nothing left to use.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rmcp::ServiceError;
use tokio::time::timeout;

use super::call_error::CallError;
use crate::server::{Connection, Live, Phase, SILENCE, Slot};

/// The use of a server; see [`Handle::lease`](crate::Handle::lease). Stands for rmcp's connection.
///
/// ```
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let lease = set.server("echo").expect("it came up").lease().await?;
/// assert_eq!(lease.list_tools(None).await?.tools.len(), 1);
/// assert!(lease.peer_info().is_some(), "all that rmcp knows of the server");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lease {
    slot: Arc<Slot>,
    live: Live,
    epoch: u64,
}

impl Lease {
    pub(crate) fn new(slot: Arc<Slot>, live: Live, epoch: u64) -> Self {
        Self { slot, live, epoch }
    }

    /// Waits until the connection is over: for a use that would otherwise wait for the server in vain.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let lease = set.server("echo").expect("it came up").lease().await?;
    /// drop(set);
    /// lease.over().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn over(&self) {
        self.live.over.cancelled().await;
    }

    /// The answer, or the news that there will be none.
    pub(crate) async fn race<T>(
        &self,
        call: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, CallError> {
        let name = || self.slot.spec.name().to_owned();
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            () = self.over() => return Err(self.lost()),
        };
        match answer {
            Err(error @ (ServiceError::TransportClosed | ServiceError::TransportSend(_)))
                if self.is_ours(&error).await =>
            {
                // rmcp was quicker than the server's own task, which knows why.
                self.over().await;
                Err(self.lost())
            }
            other => other.map_err(|error| CallError::Service { name: name(), error }),
        }
    }

    /// Whether this connection is closed, or another one that the host's own code was about.
    async fn is_ours(&self, error: &ServiceError) -> bool {
        matches!(error, ServiceError::TransportSend(_))
            || timeout(SILENCE, self.over()).await.is_ok()
            || self.live.connection.is_transport_closed()
    }

    fn lost(&self) -> CallError {
        let name = self.slot.spec.name().to_owned();
        self.slot.look(|state| match state.phase {
            Phase::Ending(why) | Phase::Ended(why) => CallError::Ended { name, why },
            _ => CallError::Lost { name },
        })
    }
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.live.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.slot.give_back(self.epoch);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("name", &self.slot.spec.name()).finish_non_exhaustive()
    }
}

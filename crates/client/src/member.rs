//! A server as its set sees it: the slot, and the task that can be waited for.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::launch::ConnectError;
use crate::life::EndedWhy;
use crate::owner::Finished;
use crate::plan::Serving;
use crate::replaced::{EndedServer, FailedServer};
use crate::slot::{Order, Slot};

/// A server, and its one task.
pub(crate) struct Member {
    pub(crate) slot: Arc<Slot>,
    pub(crate) task: JoinHandle<Finished>,
}

impl Member {
    pub(crate) fn name(&self) -> String {
        self.slot.spec.name().to_owned()
    }

    pub(crate) fn serving(&self) -> Serving {
        Serving { spec: self.slot.spec.clone(), alive: !self.slot.is_ended() }
    }

    pub(crate) async fn failure(self) -> FailedServer {
        let name = self.name();
        let Finished { outcome, failure } = self.task.await.unwrap_or_default();
        FailedServer { name, error: failure.unwrap_or_else(|| Arc::new(ConnectError::Closed)), outcome }
    }
}

/// Ends them all at once, after their calls in flight.
pub(crate) async fn retire(members: Vec<Member>, why: EndedWhy, drain: Duration) -> Vec<EndedServer> {
    for member in &members {
        member.slot.order(Order::Stop { why, drain });
    }
    let mut ended = Vec::new();
    for member in members {
        let name = member.name();
        ended.push(EndedServer { name, outcome: member.task.await.unwrap_or_default().outcome });
    }
    ended
}

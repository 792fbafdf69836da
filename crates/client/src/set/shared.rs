//! What all tasks of a set share: how it treats its servers, who listens, which processes there are, and its close.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::ClientLifecycleMode;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::options::{MakeHandler, Replacing, ServerLimit};
use super::registry::Registry;
use crate::event::{Bus, Event};
use crate::server::{EndedWhy, Mooring, Outcome, Slot, cut_all};

pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) bus: Bus,
    pub(crate) starts: Semaphore,
    pub(crate) limit: Option<ServerLimit>,
    pub(crate) wait_for_room: Duration,
    pub(crate) drain: Duration,
    pub(crate) replacing: Replacing,
    pub(crate) handler: Arc<MakeHandler>,
    pub(crate) lifecycle: ClientLifecycleMode,
    pub(crate) closing: CancellationToken,
    pub(crate) why_closed: OnceLock<EndedWhy>,
}

impl Shared {
    /// From here on everything ends; the first reason stays.
    pub(crate) fn close(&self, why: EndedWhy) {
        let _ = self.why_closed.set(why);
        self.closing.cancel();
    }

    /// Why, once it is closing. Before that, a server whose process was cut has lost its task.
    pub(crate) fn why_closed(&self) -> EndedWhy {
        self.why_closed.get().copied().unwrap_or(EndedWhy::Unattended)
    }

    /// Ends the processes of these servers, whatever their tasks are doing.
    pub(crate) async fn cut(self: &Arc<Self>, slots: &[Arc<Slot>]) -> Vec<(Arc<Slot>, Outcome)> {
        self.cut_off(self.registry.of(slots)).await
    }

    /// Ends these processes, beside the runtime.
    pub(crate) async fn cut_off(
        self: &Arc<Self>,
        mut moorings: Vec<Arc<Mooring>>,
    ) -> Vec<(Arc<Slot>, Outcome)> {
        moorings.retain(|mooring| !mooring.is_over());
        if moorings.is_empty() {
            return Vec::new();
        }
        let shared = self.clone();
        tokio::task::spawn_blocking(move || shared.cut_now(&moorings)).await.unwrap_or_default()
    }

    /// Ends these processes on this thread, without a runtime. Listeners are told here: the tasks know nothing of it.
    pub(crate) fn cut_now(&self, moorings: &[Arc<Mooring>]) -> Vec<(Arc<Slot>, Outcome)> {
        let ended = cut_all(moorings);
        for (slot, outcome) in &ended {
            let (name, outcome) = (slot.spec.name().to_owned(), outcome.clone());
            self.bus.tell(&Event::Ended { name, outcome });
        }
        ended
    }
}

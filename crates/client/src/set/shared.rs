//! What all tasks of a set share: how it treats its servers, who listens, which processes there are, and its close.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::ClientLifecycleMode;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::held_processes::HeldProcesses;
use super::options::{MakeHandler, Replacing, ServerLimit};
use crate::event::{Bus, Event};
use crate::server::{EndedWhy, Outcome, ProcessHold, Registration, Slot, end_all_blocking};

pub(crate) struct Shared {
    pub(crate) processes: HeldProcesses,
    pub(crate) bus: Bus,
    pub(crate) starts: Semaphore,
    pub(crate) limit: Option<ServerLimit>,
    pub(crate) wait_for_room: Duration,
    pub(crate) drain: Duration,
    pub(crate) replacing: Replacing,
    pub(crate) handler: Arc<MakeHandler>,
    pub(crate) lifecycle: ClientLifecycleMode,
    pub(crate) registration: Registration,
    pub(crate) closing: CancellationToken,
    pub(crate) why_closed: OnceLock<EndedWhy>,
}

impl Shared {
    /// From here on everything ends; the first reason stays.
    pub(crate) fn close(&self, why: EndedWhy) {
        let _ = self.why_closed.set(why);
        self.closing.cancel();
    }

    /// Why, once it is closing. Before that, a server whose process is ended without its task has lost that task.
    pub(crate) fn why_closed(&self) -> EndedWhy {
        self.why_closed.get().copied().unwrap_or(EndedWhy::Unattended)
    }

    /// Ends the processes of these servers without their tasks.
    pub(crate) async fn end_processes_of(self: &Arc<Self>, slots: &[Arc<Slot>]) -> Vec<(Arc<Slot>, Outcome)> {
        self.end_processes(self.processes.of(slots)).await
    }

    /// Ends these processes on a blocking thread of the runtime.
    pub(crate) async fn end_processes(
        self: &Arc<Self>,
        mut holds: Vec<Arc<ProcessHold>>,
    ) -> Vec<(Arc<Slot>, Outcome)> {
        holds.retain(|hold| !hold.is_over());
        if holds.is_empty() {
            return Vec::new();
        }
        let shared = self.clone();
        tokio::task::spawn_blocking(move || shared.end_processes_blocking(&holds)).await.unwrap_or_default()
    }

    /// Ends these processes on this thread, without a runtime. Listeners are told here: the tasks know nothing of it.
    pub(crate) fn end_processes_blocking(&self, holds: &[Arc<ProcessHold>]) -> Vec<(Arc<Slot>, Outcome)> {
        let ended = end_all_blocking(holds);
        for (slot, outcome) in &ended {
            let (name, outcome) = (slot.spec.name().to_owned(), outcome.clone());
            self.bus.tell(&Event::Ended { name, outcome });
        }
        ended
    }
}

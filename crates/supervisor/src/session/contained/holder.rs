//! Holds the contained server: ends it when told, and tells when it has ended.
//!
//! A task of its own, because an end is waited for while bytes still flow. Dropping the holder drops the server, which ends the
//! tree.

use std::task::{Context, Poll};

use moored_containment::{EndError, EndReport, Ladder, ServerExit, aio};
use tokio::sync::mpsc;

use crate::session::server::ServerEvent;

#[derive(Debug)]
pub(super) struct Holder {
    orders: mpsc::UnboundedSender<Ladder>,
    events: mpsc::UnboundedReceiver<ServerEvent>,
}

impl Holder {
    /// Takes the server over. To be called on a runtime.
    pub(super) fn of(server: aio::Contained) -> Self {
        let (orders, take) = mpsc::unbounded_channel();
        let (tell, events) = mpsc::unbounded_channel();
        tokio::spawn(hold(server, take, tell));
        Self { orders, events }
    }

    pub(super) fn end(&self, ladder: Ladder) {
        // The task has ended only when the tree is gone already.
        let _ = self.orders.send(ladder);
    }

    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<ServerEvent> {
        // The task always has a last event, unless it panicked.
        let lost = || ServerEvent::Gone(Err("the task that held it is gone".into()));
        self.events.poll_recv(cx).map(|event| event.unwrap_or_else(lost))
    }
}

async fn hold(
    mut server: aio::Contained,
    mut orders: mpsc::UnboundedReceiver<Ladder>,
    tell: mpsc::UnboundedSender<ServerEvent>,
) {
    let (mut ladder, mut has_exited) = (None, false);
    loop {
        let moment = tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(wanted) => { ladder = Some(wanted); continue }
                None => return,
            },
            moment = ended(&mut server, ladder, has_exited) => moment,
        };
        match moment {
            Moment::Exited(exit) => {
                has_exited = true;
                let _ = tell.send(ServerEvent::Exited(exit));
            }
            Moment::Gone(report) => {
                let _ = tell.send(ServerEvent::Gone(report.map_err(|error| error.to_string())));
                return;
            }
        }
    }
}

enum Moment {
    Exited(Option<ServerExit>),
    Gone(Result<EndReport, EndError>),
}

/// Cancel safe: an end that was asked for goes on, and asking again changes nothing.
async fn ended(server: &mut aio::Contained, ladder: Option<Ladder>, has_exited: bool) -> Moment {
    match ladder {
        None if !has_exited => Moment::Exited(server.wait().await.ok()),
        None => Moment::Gone(server.wait_ended().await),
        Some(ladder) => Moment::Gone(server.end(ladder).await),
    }
}

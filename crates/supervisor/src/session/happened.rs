//! Waiting for the next thing that happens to a session, whatever it is: the part of the driver that listens.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::aside::Aside;
use super::client::ClientProcess;
use super::door::{Asked, Door};
use super::driver::{Driver, Live};
use super::half_closes::has_no_reader;
use super::keeper::News;
use super::pump::Moved;
use super::signals::{Heard, Signals};

/// One thing that happened.
pub(super) enum Happened {
    Moved(Moved),
    News(Option<News>),
    Heard(Heard),
    Asked(Option<Asked>),
    Aside(Aside),
    ClientGone,
    /// Nobody reads our stdout any more.
    ClientDeaf,
    HungUp,
    Time,
}

impl Driver {
    /// Cancel safe.
    pub(super) async fn next(&mut self, signals: &mut Signals) -> Happened {
        let deadline = self.deadline();
        let Self { pump, live, door, client, hangup, heard, unread_stdout, .. } = self;
        tokio::select! {
            biased;
            heard = signals.next() => Happened::Heard(heard),
            news = news(live.as_mut()) => Happened::News(news),
            () = until(deadline) => Happened::Time,
            asked = asked(door.as_mut()) => Happened::Asked(asked),
            Some(aside) = heard.recv() => Happened::Aside(aside),
            () = gone(client.as_ref()) => Happened::ClientGone,
            () = hung_up(hangup.as_mut()) => Happened::HungUp,
            () = has_no_reader(unread_stdout.as_ref()) => Happened::ClientDeaf,
            // The last: a flood of bytes must not keep anything else from being heard.
            moved = pump.step() => Happened::Moved(moved),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        [
            self.settled_at,
            self.tick_at,
            self.idle_deadline(),
            self.lifetime_deadline(),
            self.catch_up_deadline(),
            self.unread_until,
            self.half_close_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

async fn news(live: Option<&mut Live>) -> Option<News> {
    match live {
        Some(live) => live.keeper.news().await,
        None => std::future::pending().await,
    }
}

async fn asked(door: Option<&mut Door>) -> Option<Asked> {
    match door {
        Some(door) => door.asked().await,
        None => std::future::pending().await,
    }
}

async fn gone(client: Option<&ClientProcess>) {
    match client {
        Some(client) => client.gone().await,
        None => std::future::pending().await,
    }
}

async fn hung_up(hangup: Option<&mut oneshot::Receiver<()>>) {
    match hangup {
        // An error means that nobody watches any more.
        Some(hangup) => {
            if hangup.await.is_err() {
                std::future::pending().await
            }
        }
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

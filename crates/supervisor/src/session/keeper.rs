//! Holds the contained server: obeys orders about its end, and tells when it has come.
//!
//! A task of its own, because an end is waited for while bytes still flow. Dropping the handle drops the server's, which
//! ends the tree.

use moored_containment::{EndError, EndReport, Ladder, ServerExit, aio};
use tokio::sync::mpsc;

#[derive(Debug)]
pub(super) enum News {
    /// The server itself has ended; none if nobody lived to see how.
    Exited(Option<ServerExit>),
    /// So has everything else. The last news.
    Gone(Result<EndReport, EndError>),
}

#[derive(Debug)]
pub(super) struct Keeper {
    orders: mpsc::UnboundedSender<Ladder>,
    news: mpsc::UnboundedReceiver<News>,
}

impl Keeper {
    /// Takes the server over. To be called on a runtime.
    pub(super) fn of(server: aio::Contained) -> Self {
        let (orders, take) = mpsc::unbounded_channel();
        let (tell, news) = mpsc::unbounded_channel();
        tokio::spawn(keep(server, take, tell));
        Self { orders, news }
    }

    pub(super) fn end(&self, ladder: Ladder) {
        // Nobody listens only when it is gone already.
        let _ = self.orders.send(ladder);
    }

    /// Cancel safe.
    pub(super) async fn news(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

async fn keep(
    mut server: aio::Contained,
    mut orders: mpsc::UnboundedReceiver<Ladder>,
    tell: mpsc::UnboundedSender<News>,
) {
    let (mut ladder, mut exited) = (None, false);
    loop {
        let gone = tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(wanted) => { ladder = Some(wanted); continue }
                None => return,
            },
            gone = ended(&mut server, ladder, exited) => gone,
        };
        match gone {
            Moment::Exited(exit) => {
                exited = true;
                let _ = tell.send(News::Exited(exit));
            }
            Moment::Gone(report) => {
                let _ = tell.send(News::Gone(report));
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
async fn ended(server: &mut aio::Contained, ladder: Option<Ladder>, exited: bool) -> Moment {
    match ladder {
        None if !exited => Moment::Exited(server.wait().await.ok()),
        None => Moment::Gone(server.wait_ended().await),
        Some(ladder) => Moment::Gone(server.end(ladder).await),
    }
}

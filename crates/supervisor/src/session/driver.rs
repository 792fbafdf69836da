//! The one task of a session: turns whatever happens into an event, asks `state` what follows, and does it.
//!
//! It owns the server, the queues and the conversation. What is waited for is in `happened`, what the bytes mean in `traffic`,
//! what an operator asks in `asked`, what is told in `telling`, how a server starts and ends in `starting` and `ending`: parts
//! of this driver that have a file of their own.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use moored_containment::{
    EndReport, ProcessIdentity, Rung, RuntimeDir, ServerExit, Signaller, unblock_signals,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::aside::{Aside, look_for_writers};
use super::client::{ClientProcess, StdinHold};
use super::code::Code;
use super::crashes::Crashes;
use super::direct::{hangup_of, hangup_of_watched};
use super::distant_clients::DistantClient;
use super::door::Door;
use super::happened::Happened;
use super::keeper::{Keeper, News};
use super::pid_file::PidFile;
use super::pump::Pump;
use super::signals::{Heard, Signals};
use super::start::{self, RunError, RunOutcome, Surroundings};
use super::state::{Action, Event, ONE_SHOT, State, draining_time, within_bound};
use crate::berth::Facts;
use crate::control::Reply;
use crate::event::{Counters, SleepReason, StartReason, Started};
use crate::mcp::{Replay, Talk};
use crate::relay::Envelope;
use crate::superseding::Superseded;
use moored_launch::ServerSpec;

/// How long a server has the machine to itself at its start: history and the sweep can wait.
const FIRST: Duration = Duration::from_millis(150);
/// How much of what a dead client had said is read at most.
const MOST_LAST_WORDS: usize = 256;

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) spec: ServerSpec,
    pub(super) facts: Facts,
    pub(super) client: Option<ClientProcess>,
    pub(super) folder: Option<RuntimeDir>,
    pub(super) pump: Pump,
    pub(super) hangup: Option<oneshot::Receiver<()>>,
    pub(super) door: Option<Door>,
    pub(super) around: Surroundings,
}

/// A message that waits for a server.
pub(super) struct Held {
    pub(super) line: Vec<u8>,
    /// None for bytes that are no message.
    pub(super) envelope: Option<Envelope>,
}

/// A server that was started again is told what its predecessor knew.
pub(super) struct CatchingUp {
    pub(super) replay: Replay,
    /// When it has taken too long to answer.
    pub(super) until: Instant,
}

/// The server that runs now.
pub(super) struct Live {
    pub(super) keeper: Keeper,
    pub(super) signals: Signaller,
    pub(super) started: Started,
    pub(super) guardians: [ProcessIdentity; 2],
    pub(super) since: Instant,
    pub(super) pid_file: Option<PidFile>,
}

pub(super) struct Driver {
    pub(super) spec: ServerSpec,
    pub(super) facts: Facts,
    pub(super) folder: Option<RuntimeDir>,
    pub(super) around: Surroundings,
    pub(super) pump: Pump,
    pub(super) state: State,
    pub(super) talk: Talk,
    pub(super) replay: Option<CatchingUp>,
    pub(super) held: VecDeque<Held>,
    /// The `initialize` that a server did not answer before it was put to sleep; the next one is told it first.
    pub(super) unanswered: Option<Vec<u8>>,
    pub(super) live: Option<Live>,
    pub(super) counters: Counters,
    pub(super) server_version: Option<String>,
    pub(super) code: Option<Code>,
    pub(super) last_activity: Option<Instant>,
    pub(super) began: Instant,
    /// Others are being asked to make room for a wake.
    pub(super) is_making_room: bool,
    /// Whether the tree has to be gone by a bound after the end of the input: not where whoever wrote it has left.
    pub(super) is_bound: bool,
    /// The client will say no more: the server's input ends when it has been told all.
    pub(super) is_input_over: bool,
    pub(super) held_bytes: usize,
    is_watching: bool,
    /// When the client closed our stdin.
    pub(super) eof_seen: Option<Instant>,
    /// The same, if its tree has to be gone by a bound from then on.
    pub(super) eof_at: Option<Instant>,
    /// When an input that was closed is not read any more, if it cannot be read to its end.
    pub(super) unread_until: Option<Instant>,
    /// Clients that are no ancestors, as far as any were found.
    pub(super) distant_clients: Vec<DistantClient>,
    /// When it is clear that a server which has closed a pipe has not done so by exiting.
    pub(super) half_close_at: Option<Instant>,
    /// The server lives and has closed its stdin or stdout.
    pub(super) is_half_closed: bool,
    /// Our stdout, watched for having no reader where our stdin cannot tell any more that the client has left.
    pub(super) unread_stdout: Option<AsyncFd<OwnedFd>>,
    /// When the server answered `initialize`, in clock ticks since boot.
    pub(super) initialized_ticks: Option<u64>,
    /// Whether the server answers `get_server_info` itself.
    pub(super) has_own_info: bool,
    pub(super) asides: mpsc::UnboundedSender<Aside>,
    /// Who waits for an end, and who for a sleep.
    pub(super) stops: Vec<oneshot::Sender<Reply>>,
    pub(super) sleeps: Vec<oneshot::Sender<Reply>>,
    pub(super) sleep_reason: SleepReason,
    /// When a superseded server is looked for again.
    pub(super) looked_at: Option<Instant>,
    pub(super) superseded_by: Option<Superseded>,
    pub(super) crashes: Option<Crashes>,
    pub(super) crashes_in_a_row: u32,
    pub(super) gave_up: bool,
    pub(super) tick_at: Option<Instant>,
    pub(super) exit: Option<ServerExit>,
    pub(super) exit_code: Option<i32>,
    pub(super) report: Option<EndReport>,
    pub(super) client: Option<ClientProcess>,
    pub(super) hangup: Option<oneshot::Receiver<()>>,
    pub(super) door: Option<Door>,
    pub(super) heard: mpsc::UnboundedReceiver<Aside>,
    pub(super) looking_since: Option<Instant>,
    /// When the server has had the machine to itself for long enough; what happened until then waits.
    pub(super) settled_at: Option<Instant>,
    pub(super) waiting: Vec<crate::event::Event>,
}

impl Driver {
    pub(super) fn new(parts: Parts, warnings: &[String]) -> Self {
        let Parts { spec, facts, client, folder, pump, hangup, door, around } = parts;
        let (asides, heard) = mpsc::unbounded_channel();
        let asker = facts.client.as_ref().and_then(|client| client.identity);
        let crashes = folder.as_ref().map(|folder| Crashes::of(folder.path(), facts.entry_key, asker));
        let mut driver = Self {
            server_version: spec.rules.server_version.clone(),
            state: State::Starting(StartReason::First),
            talk: Talk::default(),
            replay: None,
            held: VecDeque::new(),
            unanswered: None,
            live: None,
            counters: Counters::default(),
            code: None,
            last_activity: None,
            began: Instant::now(),
            is_making_room: false,
            is_bound: client.as_ref().is_none_or(|client| client.stdin.is_possible()),
            is_input_over: false,
            held_bytes: 0,
            is_watching: false,
            eof_seen: None,
            eof_at: None,
            unread_until: None,
            distant_clients: Vec::new(),
            half_close_at: None,
            is_half_closed: false,
            unread_stdout: None,
            initialized_ticks: None,
            has_own_info: false,
            stops: Vec::new(),
            sleeps: Vec::new(),
            sleep_reason: SleepReason::Operator,
            looked_at: None,
            superseded_by: None,
            crashes_in_a_row: 0,
            gave_up: false,
            tick_at: None,
            exit: None,
            exit_code: None,
            report: None,
            looking_since: None,
            settled_at: Some(Instant::now() + FIRST),
            waiting: vec![start::begun(&facts)],
            spec,
            facts,
            folder,
            around,
            pump,
            asides,
            crashes,
            client,
            hangup,
            door,
            heard,
        };
        warnings.iter().for_each(|warning| driver.warn(warning));
        driver
    }

    /// Lives to the end.
    pub(super) async fn live(mut self) -> Result<RunOutcome, RunError> {
        // Before anything is started: from here on a signal is an ending, not our death.
        let mut signals = Signals::listen().map_err(RunError::Reactor)?;
        unblock_signals();
        if self.client.as_ref().is_some_and(|client| client.stdin == StdinHold::Not) {
            look_for_writers(self.asides.clone());
        }
        if let Some(found) = self.crashes.as_ref().and_then(Crashes::crash_loop) {
            self.give_up(found);
        } else {
            if let Err(error) = self.start(StartReason::First) {
                self.not_started(&error);
                return Err(error);
            }
            self.dispatch(Event::Started);
        }
        while !matches!(self.state, State::Ended(_)) {
            let happened = self.next(&mut signals).await;
            let is_much = matches!(&happened, Happened::Moved(moved) if moved.is_much());
            self.handle(happened);
            if is_much {
                // The keeper and the door are tasks of this thread too, and a flood is always ready.
                tokio::task::yield_now().await;
            }
            self.watch_unread_input();
        }
        Ok(self.leave().await)
    }

    fn handle(&mut self, happened: Happened) {
        match happened {
            Happened::Moved(moved) => self.moved(moved),
            Happened::News(Some(News::Exited(exit))) => self.exited(exit),
            Happened::News(Some(News::Gone(report))) => {
                self.tree_gone(report.map_err(|error| error.to_string()))
            }
            // The keeper always has a last word.
            Happened::News(None) => self.tree_gone(Err("its keeper is gone".into())),
            Happened::Heard(Heard::End(signal)) => self.dispatch(Event::Signal(signal)),
            Happened::Heard(Heard::Stop) => self.pause(),
            Happened::Heard(Heard::Continue) => self.signal_job(rustix::process::Signal::CONT),
            Happened::Asked(Some(asked)) => self.asked(asked),
            Happened::Asked(None) => self.door = None,
            Happened::Aside(aside) => self.aside(aside),
            Happened::ClientGone => self.client_gone(),
            Happened::ClientDeaf => {
                self.unread_stdout = None;
                self.dispatch(Event::ClientGone);
            }
            Happened::HungUp => self.hung_up(),
            Happened::Time => self.time(),
        }
    }

    /// What it said before it died counts as said.
    fn client_gone(&mut self) {
        self.is_bound = true;
        if let Some(client) = &mut self.client {
            client.forget();
        }
        for _ in 0..MOST_LAST_WORDS {
            match self.pump.hear_client_now() {
                Some(moved) => self.moved(moved),
                None => break,
            }
        }
        self.dispatch(Event::ClientGone);
    }

    /// The other end of a stdin that we do not read is closed.
    fn hung_up(&mut self) {
        self.hangup = None;
        if !self.spec.is_direct() {
            // What it said last is still to be read, but not for ever.
            let patience = self.eof_patience();
            self.unread_until = Some(Instant::now() + patience);
        } else if self.is_bound_now() {
            self.dispatch(Event::Eof { wanted: 0, patience: Duration::ZERO });
        } else {
            // Whoever wrote has left, and what it wrote may still be read.
            self.dispatch(Event::Eof { wanted: 1, patience: ONE_SHOT });
        }
    }

    /// How long the rest may take that follows the end of the input, which is now unless it was noticed before. A client
    /// that holds our stdin is bound to see us gone in time. Whoever wrote and left, the first part of a shell's pipeline
    /// or a file, waits for nothing but the answer.
    pub(super) fn eof_patience(&mut self) -> Duration {
        if !self.is_bound_now() {
            return ONE_SHOT;
        }
        let seen = self.eof_seen;
        let since = self.eof_at.get_or_insert_with(|| seen.unwrap_or_else(Instant::now)).elapsed();
        draining_time(&self.spec.launch.ladder).saturating_sub(since)
    }

    /// A client that is no ancestor and has not left is one like any other.
    pub(super) fn is_bound_now(&mut self) -> bool {
        self.is_bound = self.is_bound || self.distant_clients.iter().any(DistantClient::lives);
        self.is_bound
    }

    /// A client was found after the end of the input: what is left of its bound holds from now on.
    pub(super) fn bind(&mut self) {
        if !std::mem::replace(&mut self.is_bound, true) && self.state == State::Draining {
            self.tick_at = Some(Instant::now() + self.eof_patience());
        }
    }

    /// Nobody would see the end of an input that is not read.
    fn watch_unread_input(&mut self) {
        if self.pump.is_held_up() && !self.is_watching {
            // Where it cannot be watched now it is tried again at the next turn.
            let stdin = || std::io::stdin().as_fd().try_clone_to_owned();
            self.hangup = stdin().and_then(hangup_of_watched).or_else(|_| stdin().and_then(hangup_of)).ok();
            self.is_watching = self.hangup.is_some();
        }
    }

    /// Asks what follows, and does it.
    pub(super) fn dispatch(&mut self, event: Event) {
        let (state, actions) = self.state.next(event);
        let was = std::mem::replace(&mut self.state, state);
        if was != state {
            self.tick_at = None;
        }
        for action in actions {
            self.act(action);
        }
        if was == State::FallingAsleep && self.state == State::Asleep {
            self.fell_asleep();
        }
        if was != self.state && self.state.ends_at_eof() && self.eof_seen.is_some() {
            // The client had closed its end before this state.
            self.tell_eof();
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start(why) => self.start_again(why),
            Action::CloseInput => {
                self.is_input_over = true;
                self.close_input();
            }
            Action::End(from) => self.end_tree(from),
            Action::PassInterrupt => self.signal_job(rustix::process::Signal::INT),
            Action::Wait(time) => self.tick_at = Some(Instant::now() + time),
            Action::FailCalls => self.fail_calls(),
            // The loop sees it by the state.
            Action::Leave => {}
        }
    }

    fn end_tree(&mut self, from: Rung) {
        let ladder = within_bound(self.spec.launch.ladder, from, self.eof_at.map(|at| at.elapsed()));
        if let Some(live) = &self.live {
            live.keeper.end(ladder);
        }
    }

    /// What a terminal sends to a job goes to the server and whoever is in its group.
    fn signal_job(&self, signal: rustix::process::Signal) {
        if let Some(live) = &self.live {
            // It may have ended just now, which is told by itself.
            let _ = live.signals.group(signal.as_raw());
        }
    }

    /// ^Z: the server stops, and then we do, until somebody goes on with us.
    fn pause(&self) {
        use rustix::process::{Signal, getpid, kill_process};
        self.signal_job(Signal::STOP);
        // The shell waits for this.
        let _ = kill_process(getpid(), Signal::STOP);
    }

    pub(super) fn update_pid_file(&self) {
        if let Some(file) = self.live.as_ref().and_then(|live| live.pid_file.as_ref()) {
            file.update(self.server_version.as_deref());
        }
    }

    pub(super) fn works(&self) {
        if let Some(crashes) = &self.crashes {
            crashes.forget();
        }
    }

    pub(super) fn catch_up_deadline(&self) -> Option<Instant> {
        self.replay.as_ref().map(|catching_up| catching_up.until)
    }

    fn time(&mut self) {
        let now = Instant::now();
        if self.settled_at.is_some_and(|at| at <= now) {
            self.settle();
        } else if self.catch_up_deadline().is_some_and(|at| at <= now) {
            self.end_for_good("it does not answer what its predecessor had been asked");
        } else if self.unread_until.is_some_and(|at| at <= now) {
            self.unread_until = None;
            self.dispatch(Event::Eof { wanted: 0, patience: Duration::ZERO });
        } else if self.half_close_at.is_some_and(|at| at <= now) {
            self.pass_half_close();
        } else if self.tick_at.is_some_and(|at| at <= now) {
            self.tick_at = None;
            self.dispatch(Event::Tick);
        } else {
            self.consider_sleep(now);
        }
    }
}

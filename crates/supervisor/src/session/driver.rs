//! The one task of a session: turns whatever happens into an event, asks `state` what follows, and does it.
//!
//! It owns the server, the queues and the conversation. What the bytes mean is in `traffic`; what an operator asks is in
//! `asked`; both are parts of this driver that have a file of their own.

use std::collections::VecDeque;
use std::time::Duration;

use moored_containment::{EndReport, Ladder, Rung, RuntimeDir, ServerExit};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::aside::{Aside, look_around, look_at_code};
use super::client::ClientProcess;
use super::code::Code;
use super::crashes::Crashes;
use super::door::{Asked, Door};
use super::keeper::{Keeper, News};
use super::pid_file::PidFile;
use super::pump::{Moved, Pump, ServerFiles};
use super::signals::{Heard, Signals};
use super::start::{self, RunError, RunOutcome, Surroundings, event};
use super::state::{Action, Event, Exit, State};
use crate::berth::Facts;
use crate::control::Reply;
use crate::event::{Counters, EndCause, Ended, SleepReason, StartReason, Started, What};
use crate::mcp::{Failure, Replay, Talk, error_line};
use crate::relay::Envelope;
use crate::spec::{Restart, ServerSpec};

/// How long the client may take to fetch the server's last words, without fetching any.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a server has the machine to itself at its start: history and the sweep can wait.
const FIRST: Duration = Duration::from_millis(150);
/// How long our own look around may go on when all else is over.
const LAST_LOOK: Duration = Duration::from_millis(1500);
/// A server that lived this long did not crash in a row with the one before.
const STABLE: Duration = Duration::from_secs(60);

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

/// The server that runs now.
pub(super) struct Live {
    pub(super) keeper: Keeper,
    pub(super) started: Started,
    pub(super) guardians: [moored_containment::ProcessIdentity; 2],
    pub(super) since: Instant,
    pid_file: Option<PidFile>,
}

pub(super) struct Driver {
    pub(super) spec: ServerSpec,
    pub(super) facts: Facts,
    pub(super) folder: Option<RuntimeDir>,
    pub(super) around: Surroundings,
    pub(super) pump: Pump,
    pub(super) state: State,
    pub(super) talk: Talk,
    pub(super) replay: Option<Replay>,
    pub(super) held: VecDeque<Held>,
    pub(super) live: Option<Live>,
    pub(super) counters: Counters,
    pub(super) server_version: Option<String>,
    pub(super) code: Option<Code>,
    pub(super) last_activity: Option<Instant>,
    pub(super) began: Instant,
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
    pub(super) superseded_by: Option<crate::event::RunId>,
    crashes: Option<Crashes>,
    crashes_in_a_row: u32,
    gave_up: bool,
    tick_at: Option<Instant>,
    exit: Option<ServerExit>,
    exit_code: Option<i32>,
    pub(super) report: Option<EndReport>,
    client: Option<ClientProcess>,
    hangup: Option<oneshot::Receiver<()>>,
    door: Option<Door>,
    heard: mpsc::UnboundedReceiver<Aside>,
    looking: bool,
    /// When the server has had the machine to itself for long enough; what happened until then waits.
    settled_at: Option<Instant>,
    waiting: Vec<crate::event::Event>,
}

/// One thing that happened.
enum Happened {
    Moved(Moved),
    News(Option<News>),
    Heard(Heard),
    Asked(Option<Asked>),
    Aside(Aside),
    ClientGone,
    HungUp,
    Time,
}

impl Driver {
    pub(super) fn new(parts: Parts, warnings: &[String]) -> Self {
        let Parts { spec, facts, client, folder, pump, hangup, door, around } = parts;
        let (asides, heard) = mpsc::unbounded_channel();
        let crashes = folder.as_ref().map(|folder| Crashes::of(folder.path(), facts.entry_key));
        let mut driver = Self {
            server_version: spec.rules.server_version.clone(),
            state: State::Starting(StartReason::First),
            talk: Talk::default(),
            replay: None,
            held: VecDeque::new(),
            live: None,
            counters: Counters::default(),
            code: None,
            last_activity: None,
            began: Instant::now(),
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
            looking: false,
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
        if let Some(code) = self.crashes.as_ref().and_then(Crashes::too_many) {
            self.give_up(code);
        } else {
            self.start(StartReason::First)?;
            self.dispatch(Event::Started);
        }
        while !matches!(self.state, State::Ended(_)) {
            let happened = self.next(&mut signals).await;
            self.handle(happened);
        }
        Ok(self.leave().await)
    }

    async fn next(&mut self, signals: &mut Signals) -> Happened {
        let deadline = self.deadline();
        let Self { pump, live, door, client, hangup, heard, .. } = self;
        tokio::select! {
            biased;
            heard = signals.next() => Happened::Heard(heard),
            news = news(live.as_mut()) => Happened::News(news),
            moved = pump.step() => Happened::Moved(moved),
            asked = asked(door.as_mut()) => Happened::Asked(asked),
            Some(aside) = heard.recv() => Happened::Aside(aside),
            () = gone(client.as_ref()) => Happened::ClientGone,
            () = hung_up(hangup.as_mut()) => Happened::HungUp,
            () = until(deadline) => Happened::Time,
        }
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
            Happened::Heard(Heard::Continue) => self.signal_server(rustix::process::Signal::CONT),
            Happened::Asked(Some(asked)) => self.asked(asked),
            Happened::Asked(None) => self.door = None,
            Happened::Aside(aside) => self.aside(aside),
            Happened::ClientGone => {
                self.client = None;
                self.dispatch(Event::ClientGone);
            }
            Happened::HungUp => {
                self.hangup = None;
                self.dispatch(Event::Eof { wanted: 0 });
            }
            Happened::Time => self.time(),
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
        if was != self.state && self.state == State::Asleep {
            self.fell_asleep();
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start(why) => self.start_again(why),
            Action::CloseInput => {
                self.pump.closing_input = true;
                self.pump.close_input_if_done();
            }
            Action::End(from) => self.end_tree(from),
            Action::PassInterrupt => self.signal_server(rustix::process::Signal::INT),
            Action::Wait(time) => self.tick_at = Some(Instant::now() + time),
            Action::FailCalls => self.fail_calls(),
            // The loop sees it by the state.
            Action::Leave => {}
        }
    }

    fn end_tree(&mut self, from: Rung) {
        let ladder = Ladder { from, ..self.spec.rules.ladder };
        if let Some(live) = &self.live {
            live.keeper.end(ladder);
        }
    }

    fn signal_server(&self, signal: rustix::process::Signal) {
        if let Some(live) = &self.live {
            live.keeper.signal(signal.as_raw());
        }
    }

    /// ^Z: the server stops, and so do we, until somebody goes on with us.
    fn pause(&self) {
        use rustix::process::{Signal, getpid, kill_process};
        self.signal_server(Signal::STOP);
        // The order is on its way to the keeper's task, which runs when we are continued at the latest; stopping ourselves
        // is what the shell waits for.
        let _ = kill_process(getpid(), Signal::STOP);
    }

    // === starting ===

    fn start(&mut self, why: StartReason) -> Result<(), RunError> {
        let mut server = start::command(&self.spec, &self.around.remove_pid_file).spawn_async()?;
        let started = Started {
            session: server.id(),
            process: server.identity(),
            strength: server.strength().clone(),
            why,
        };
        self.pump.server = ServerFiles {
            stdin: server.stdin.take(),
            stdout: server.stdout.take(),
            stderr: server.stderr.take(),
        };
        self.pump.closing_input = false;
        (self.exit, self.report) = (None, None);
        let pid_file = self.write_pid_file(started.process.pid);
        self.note(What::Started(started.clone()));
        let guardians = server.guardians();
        self.live =
            Some(Live { keeper: Keeper::of(server), started, guardians, since: Instant::now(), pid_file });
        Ok(())
    }

    fn start_again(&mut self, why: StartReason) {
        if let Err(error) = self.start(why) {
            self.warn(&format!("the server could not be started again: {error}"));
            return self.dispatch(Event::StartFailed);
        }
        match why {
            StartReason::Restart => self.counters.restarts += 1,
            StartReason::Wake | StartReason::First => self.counters.wakes += 1,
        }
        self.make_room_for_wake();
        look_at_code(&self.spec, self.asides.clone());
        self.dispatch(Event::Started);
        match Replay::begin(&self.talk) {
            Some((replay, first)) => {
                self.pump.to_server.push(&first);
                self.replay = Some(replay);
            }
            None => self.release_held(),
        }
    }

    fn write_pid_file(&mut self, pid: u32) -> Option<PidFile> {
        let path = self.spec.rules.pid_file.as_ref()?;
        match PidFile::write(path, pid, self.server_version.as_deref()) {
            Ok(file) => Some(file),
            Err(error) => {
                self.warn(&error.to_string());
                None
            }
        }
    }

    /// It crashed so often lately that it is not started: its client is told at once.
    fn give_up(&mut self, code: i32) {
        self.gave_up = true;
        self.exit_code = Some(code);
        self.state = State::Tripped;
        self.warn(&format!(
            "`{}` has crashed too often within the last minute (last exit {code}) and is not started",
            self.spec.name
        ));
    }

    // === ending ===

    fn exited(&mut self, exit: Option<ServerExit>) {
        // What it said before counts as said.
        self.drain();
        self.exit = exit;
        let failed = !exit.is_some_and(ServerExit::success);
        if failed && self.state == State::Serving {
            if !self.talk.is_initialized()
                && let Some(crashes) = &self.crashes
            {
                crashes.note(exit);
            }
            if self.spec.rules.restart == Restart::OnCrash {
                return self.crashed();
            }
        }
        self.dispatch(Event::Exited(Exit::Done));
    }

    fn crashed(&mut self) {
        let lived = self.live.as_ref().map_or(Duration::ZERO, |live| live.since.elapsed());
        self.crashes_in_a_row = if lived > STABLE { 1 } else { self.crashes_in_a_row + 1 };
        self.dispatch(Event::Exited(Exit::Crashed(self.crashes_in_a_row)));
    }

    fn tree_gone(&mut self, report: Result<EndReport, String>) {
        self.drain();
        self.live = None;
        self.pump.server = ServerFiles::default();
        self.pump.to_server.clear();
        self.replay = None;
        match report {
            Ok(report) => {
                self.exit = self.exit.or(report.status);
                self.warn_of_survivors(&report);
                self.report = Some(report);
            }
            Err(error) => self.warn(&format!("how the tree ended is not known: {error}")),
        }
        self.dispatch(Event::TreeGone);
        if self.state == State::BackingOff {
            let after =
                self.tick_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
            self.note(What::Restarting {
                attempt: self.crashes_in_a_row,
                after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                exit: self.exit,
            });
        }
    }

    fn warn_of_survivors(&mut self, report: &EndReport) {
        if !report.survivors.is_empty() {
            let who: Vec<String> = report
                .survivors
                .iter()
                .map(|survivor| format!("{} ({:?})", survivor.process.pid, survivor.reason))
                .collect();
            self.warn(&format!("still running after the end: {}", who.join(", ")));
        } else if !report.verified {
            self.warn("it could not be proven that nothing is left");
        }
    }

    /// Answers whatever is in flight or waits for a server, with an error.
    fn fail_calls(&mut self) {
        let (failure, why) = match self.exit {
            Some(exit) => (Failure::ServerEnded, format!("the server ended ({})", words(exit))),
            None => (Failure::NotStarted, "the server could not be started".to_owned()),
        };
        for id in self.talk.take_calls() {
            self.pump.push_output(&error_line(&id, failure, &why));
        }
        // What waits for a server that will be started again can go on waiting.
        if !matches!(self.state, State::Crashed(_)) {
            for held in std::mem::take(&mut self.held) {
                self.refuse(held.envelope.as_ref(), failure, &why);
            }
        }
    }

    pub(super) fn refuse(&mut self, envelope: Option<&Envelope>, failure: Failure, why: &str) {
        if let Some(id) = envelope.filter(|envelope| envelope.is_request()).and_then(Envelope::real_id) {
            self.pump.push_output(&error_line(id, failure, why));
        }
    }

    fn fell_asleep(&mut self) {
        self.crashes_in_a_row = 0;
        if let Some(report) = self.report.clone() {
            self.note(What::Hibernated { why: self.sleep_reason, report });
        }
        let report = self.report.clone();
        for waiting in std::mem::take(&mut self.sleeps) {
            // Whoever asked may have left.
            let _ = waiting.send(Reply::Hibernating { report: report.clone() });
        }
        self.pump.shrink();
        if !self.held.is_empty() {
            self.dispatch(Event::Message);
        }
    }

    /// Lets the last words out, and says how it was.
    async fn leave(mut self) -> RunOutcome {
        self.flush().await;
        let why = match self.state {
            _ if self.gave_up => EndCause::CrashLoop,
            State::Ended(cause) => cause,
            _ => EndCause::ServerExited,
        };
        let exit_code = self.exit_code.or(self.exit.map(ServerExit::exit_code)).unwrap_or(match why {
            EndCause::Signal(signal) => 128 + signal,
            _ => 0,
        });
        let ended =
            Ended { why, exit_code: Some(exit_code), counters: self.counters, report: self.report.take() };
        for waiting in std::mem::take(&mut self.stops) {
            let _ = waiting.send(Reply::Stopped { report: ended.report.clone() });
        }
        if let Some(door) = self.door.take() {
            door.close().await;
        }
        self.last_look().await;
        self.note(What::Ended(ended.clone()));
        RunOutcome { exit_code, ended }
    }

    /// As long as the client fetches anything.
    async fn flush(&mut self) {
        self.pump.client = None;
        while !self.pump.to_client.is_empty() || !self.pump.to_errors.is_empty() {
            let patience = if self.pump.to_client.is_empty() { LAST_WORDS / 10 } else { LAST_WORDS };
            if tokio::time::timeout(patience, self.pump.step()).await.is_err() {
                return;
            }
        }
    }

    // === asides ===

    /// The server has started: now there is time for the rest.
    fn settle(&mut self) {
        if self.settled_at.take().is_some() {
            std::mem::take(&mut self.waiting).into_iter().for_each(&mut self.around.note);
            self.looking = true;
            look_around(&self.spec, self.asides.clone());
        }
    }

    async fn last_look(&mut self) {
        self.settle();
        let until = Instant::now() + LAST_LOOK;
        while self.looking
            && let Ok(Some(aside)) = tokio::time::timeout_at(until, self.heard.recv()).await
        {
            self.aside(aside);
        }
    }

    fn aside(&mut self, aside: Aside) {
        match aside {
            Aside::Code(code) => self.code = code,
            Aside::Swept(session) => self.swept(&session),
            Aside::Died(facts) => self.bury(&facts),
            Aside::Problem(problem) => self.warn(&problem),
            Aside::Line(id, line) => {
                self.talk.settle(&id);
                self.pump.push_output(&line);
            }
            Aside::Done => self.looking = false,
        }
    }

    fn swept(&mut self, swept: &moored_containment::SweptSession) {
        let (ended, survivors) = (swept.ended.len() as u64, swept.survivors.len() as u64);
        if ended + survivors > 0 {
            self.note(What::Swept { session: swept.session, ended, survivors });
        }
    }

    /// The end of a `run` that could not tell it.
    fn bury(&mut self, facts: &Facts) {
        let ended = Ended {
            why: EndCause::MooredKilled,
            exit_code: None,
            counters: Counters::default(),
            report: None,
        };
        (self.around.note)(start::begun(facts));
        (self.around.note)(event(facts, What::Ended(ended)));
    }

    // === telling ===

    pub(super) fn note(&mut self, what: What) {
        let event = event(&self.facts, what);
        if self.settled_at.is_some() {
            self.waiting.push(event);
        } else {
            (self.around.note)(event);
        }
    }

    /// On stderr and on record.
    pub(super) fn warn(&mut self, message: &str) {
        self.pump.push_errors(format!("moored: {message}\n").as_bytes());
        self.note(What::Warned { message: message.to_owned() });
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

    fn deadline(&self) -> Option<Instant> {
        [self.settled_at, self.tick_at, self.idle_deadline(), self.lifetime_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn time(&mut self) {
        let now = Instant::now();
        if self.settled_at.is_some_and(|at| at <= now) {
            self.settle();
        } else if self.tick_at.is_some_and(|at| at <= now) {
            self.tick_at = None;
            self.dispatch(Event::Tick);
        } else {
            self.consider_sleep(now);
        }
    }
}

fn words(exit: ServerExit) -> String {
    match exit {
        ServerExit::Code(code) => format!("exit code {code}"),
        ServerExit::Signal(signal) => format!("signal {signal}"),
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

//! What a session is made of, and its loop: waits for the next thing that happens, and hands it to the file that deals with it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use moored_containment::{EndReport, RuntimeDir, ServerExit, StartError};
use moored_launch::{ServerSpec, masked_text};
use rustix::process::Signal as UnixSignal;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::requests::Waiters;
use crate::event::{EndCause, SleepReason, What};
use crate::session::code::Code;
use crate::session::conversation::{Conversation, ConversationRules, FollowUps};
use crate::session::host::{Housekeeping, LogSink, SessionHost};
use crate::session::jobs::{BackgroundResult, Jobs};
use crate::session::life::{Begin, Limit, ServerLife, Signal, Trigger};
use crate::session::outcome::{RunError, RunOutcome};
use crate::session::port::ClientPort;
use crate::session::pump::{IoStep, Pump};
use crate::session::reporter::Reporter;
use crate::session::server::{RunningServer, ServerEvent, StartFuture, StartServer};
use moored_registry::CrashMemory;
use moored_registry::Superseded;
use moored_registry::{ControlRequest, ControlServer};
use moored_registry::{RunInfo, RunRegistration};

/// What a session is made of.
pub(in crate::session) struct SessionParts<P, S> {
    pub(in crate::session) spec: Arc<ServerSpec>,
    pub(in crate::session) facts: RunInfo,
    pub(in crate::session) host: SessionHost,
    pub(in crate::session) port: P,
    pub(in crate::session) starter: S,
    pub(in crate::session) commands: mpsc::UnboundedReceiver<Command>,
}

/// What the host wants of a session, besides what operators ask over its control socket.
#[derive(Debug)]
pub(in crate::session) enum Command {
    Signal(Signal),
    /// The session ends, for this reason.
    Stop(EndCause),
    /// The server is put to sleep, unless it is busy; the next message starts it again.
    Sleep(SleepReason),
    /// ^Z: the server's process group is stopped, and then told so.
    Suspend(oneshot::Sender<()>),
    /// It goes on.
    Resume,
}

/// One thing that happened.
enum SessionEvent<S> {
    Command(Command),
    Started(Result<S, StartError>),
    Server(ServerEvent),
    Io(IoStep),
    Asked(Option<ControlRequest>),
    Job(BackgroundResult),
    Time,
}

/// Where the session is found while it lives.
pub(super) struct Presence {
    pub(super) folder: Option<RuntimeDir>,
    pub(super) registration: Option<RunRegistration>,
    pub(super) control: Option<ControlServer>,
}

/// When something is due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// The server's first moments are over.
    pub(super) startup: Option<Instant>,
    pub(super) phase: Option<Instant>,
    pub(super) drain: Option<Instant>,
    /// A server that was started again has taken too long to answer what it was told again.
    pub(super) replay: Option<Instant>,
    /// A client's end that is closed is not read any further.
    pub(super) hangup: Option<Instant>,
    /// A server that has closed a pipe has not done so by exiting.
    pub(super) half_close: Option<Instant>,
}

impl Timers {
    pub(super) fn millis_to_phase(&self) -> u64 {
        let left = self.phase.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    }
}

/// What is known of the server that runs, or ran last.
#[derive(Debug, Default)]
pub(super) struct ServerKnowledge {
    pub(super) version: Option<String>,
    pub(super) code: Option<Code>,
    /// When it answered `initialize`, in clock ticks since boot.
    pub(super) initialized_ticks: Option<u64>,
    pub(super) superseded_by: Option<Superseded>,
}

/// What is known of the end so far.
#[derive(Debug, Default)]
pub(super) struct EndSoFar {
    pub(super) exit: Option<ServerExit>,
    pub(super) report: Option<EndReport>,
    /// What to exit with, whatever the server exits with.
    pub(super) exit_code: Option<i32>,
    /// Why the session has never had a server.
    pub(super) failure: Option<RunError>,
    /// The server had crashed too often before this session, and has not been started since.
    pub(super) is_crash_loop: bool,
}

pub(in crate::session) struct Session<P, S: StartServer> {
    pub(super) spec: Arc<ServerSpec>,
    pub(super) facts: RunInfo,
    pub(super) life: ServerLife,
    pub(super) conversation: Conversation,
    pub(super) pump: Pump<P, S::Server>,
    pub(super) starter: S,
    pub(super) start_under_way: Option<StartFuture<S::Server>>,
    pub(super) presence: Presence,
    pub(super) reporter: Reporter,
    pub(super) log: LogSink,
    pub(super) jobs: Jobs,
    pub(super) waiters: Waiters,
    pub(super) timers: Timers,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) crashes: Option<CrashMemory>,
    pub(super) server: ServerKnowledge,
    pub(super) end: EndSoFar,
    pub(super) began: Instant,
    /// When the client closed its end, if its tree has to be gone by a bound from then on.
    pub(super) eof_at: Option<Instant>,
    /// The server's stdin is closed as soon as it has been told all.
    pub(super) is_input_over: bool,
    pub(super) sleep_reason: SleepReason,
    /// When silence was last looked at without putting the server to sleep.
    pub(super) last_idle_check: Option<Instant>,
    pub(super) housekeeping: Housekeeping,
    /// When our own housekeeping began, while it goes on.
    pub(super) housekeeping_since: Option<Instant>,
    pub(super) follow_ups: FollowUps,
}

impl<P: ClientPort, S: StartServer> Session<P, S> {
    pub(in crate::session) fn new(parts: SessionParts<P, S>) -> Self {
        let SessionParts { spec, facts, host, port, starter, commands } = parts;
        let mut problems = Vec::new();
        let folder = host.folder.map_err(|error| problems.push(not_findable(&error))).ok();
        let client = facts.client.as_ref().and_then(|client| client.identity);
        let crashes = folder.as_ref().map(|folder| CrashMemory::of(folder.path(), facts.entry_key, client));
        let crashed = crashes.as_ref().and_then(CrashMemory::crash_loop);
        let limit = if spec.rules.max_instances.is_some() && folder.is_some() {
            Limit::Instances
        } else {
            Limit::None
        };
        let begin = crashed.map_or(Begin::Start, |found| Begin::Tripped(found.pause));
        let (life, orders) = ServerLife::begin(begin, limit);
        let rules = ConversationRules { info_tool: spec.rules.info_tool, line_limit: spec.rules.line_limit };
        let mut session = Self {
            life,
            conversation: Conversation::new(rules),
            pump: Pump::new(port),
            starter,
            start_under_way: None,
            presence: Presence { folder, registration: None, control: None },
            reporter: Reporter::new(facts.clone(), host.events),
            log: host.log,
            jobs: Jobs::new(),
            waiters: Waiters::default(),
            timers: Timers::default(),
            commands,
            crashes,
            server: ServerKnowledge {
                version: spec.rules.server_version.clone(),
                ..ServerKnowledge::default()
            },
            end: EndSoFar::default(),
            began: Instant::now(),
            eof_at: None,
            is_input_over: false,
            sleep_reason: SleepReason::Operator,
            last_idle_check: None,
            housekeeping: host.housekeeping,
            housekeeping_since: None,
            follow_ups: FollowUps::default(),
            spec,
            facts,
        };
        problems.iter().for_each(|problem| session.warn(problem));
        if limit == Limit::None || crashed.is_some() {
            session.register();
        }
        if let Some(found) = crashed {
            session.timers.startup = Some(Instant::now());
            session.begin_tripped(found.exit_code);
        }
        orders.into_iter().for_each(|order| session.carry_out(order));
        session
    }

    /// Lives to the end.
    pub(in crate::session) async fn live(mut self) -> Result<RunOutcome, RunError> {
        while !self.life.is_over() {
            let event = self.next().await;
            let is_much = matches!(&event, SessionEvent::Io(step) if step.is_much());
            self.handle(event);
            if is_much {
                // Other tasks of this thread hold the server and answer operators, and a flood is always ready.
                tokio::task::yield_now().await;
            }
        }
        self.leave().await
    }

    /// Cancel safe.
    async fn next(&mut self) -> SessionEvent<S::Server> {
        let deadline = self.deadline();
        let Self { pump, conversation, follow_ups, start_under_way, presence, commands, jobs, .. } = self;
        let io = poll_fn(|cx| {
            if let Some(server) = &mut pump.server
                && let Poll::Ready(event) = server.running.poll_event(cx)
            {
                return Poll::Ready(SessionEvent::Server(event));
            }
            pump.poll_step(cx, conversation, follow_ups).map(SessionEvent::Io)
        });
        tokio::select! {
            biased;
            Some(command) = commands.recv() => SessionEvent::Command(command),
            started = finished(start_under_way) => SessionEvent::Started(started),
            () = until(deadline) => SessionEvent::Time,
            asked = asked(presence.control.as_mut()) => SessionEvent::Asked(asked),
            result = jobs.next() => SessionEvent::Job(result),
            // The last: a flood of bytes must not keep anything else from being seen.
            event = io => event,
        }
    }

    fn handle(&mut self, event: SessionEvent<S::Server>) {
        match event {
            SessionEvent::Command(command) => self.command(command),
            SessionEvent::Started(started) => {
                self.start_under_way = None;
                self.start_finished(started);
            }
            SessionEvent::Server(ServerEvent::Exited(exit)) => self.exited(exit),
            SessionEvent::Server(ServerEvent::Gone(report)) => self.tree_gone(report),
            SessionEvent::Io(step) => self.io(&step),
            SessionEvent::Asked(Some(asked)) => self.asked(asked),
            SessionEvent::Asked(None) => self.presence.control = None,
            SessionEvent::Job(result) => self.job(result),
            SessionEvent::Time => self.time(),
        }
        self.follow_up();
        self.note_quiet();
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Signal(signal) => self.dispatch(Trigger::Signal(signal)),
            Command::Stop(cause) => self.dispatch(Trigger::Stop(cause)),
            Command::Sleep(why) => {
                if self.idle_facts().refusal(self.server_load()).is_none() {
                    self.sleep(why);
                }
            }
            Command::Suspend(done) => {
                self.signal_server(UnixSignal::STOP);
                // The host waits for it; it may have ended.
                let _ = done.send(());
            }
            Command::Resume => self.signal_server(UnixSignal::CONT),
        }
    }

    /// On stderr and on record.
    pub(super) fn warn(&mut self, message: &str) {
        let message = masked_text(message);
        self.pump.port.send_stderr(format!("moored: {message}\n").as_bytes());
        self.reporter.note(What::Warned { message });
    }
}

pub(super) fn not_findable(error: &std::io::Error) -> String {
    format!("`ps` and `stop` will not find this server: {error}")
}

async fn asked(control: Option<&mut ControlServer>) -> Option<ControlRequest> {
    match control {
        Some(control) => control.next().await,
        None => std::future::pending().await,
    }
}

async fn finished<S>(start: &mut Option<StartFuture<S>>) -> Result<S, StartError> {
    match start {
        Some(start) => start.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

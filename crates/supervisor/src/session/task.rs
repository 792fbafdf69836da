//! The one task of a session: turns whatever happens into a trigger, asks `life` what follows, and does it.
//!
//! It owns the state machine, the conversation, the client's port and the server. What it does at a start is in `starting`, at
//! an end in `ending`, for an operator in `requests`; when a server may sleep is decided in `idle`.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use moored_containment::{EndReport, Rung, RuntimeDir, ServerExit, StartError};
use moored_launch::{ServerSpec, masked_text};
use rustix::process::Signal as UnixSignal;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::code::Code;
use super::conversation::{Conversation, ConversationRules, Effects, Failed, FollowUps};
use super::host::{Housekeeping, LogSink, SessionHost};
use super::idle::{IdleDecision, IdleFacts, Pipes};
use super::jobs::{BackgroundResult, Jobs, ServerTree, StartedProcesses};
use super::life::{
    Begin, Limit, ONE_SHOT, Order, Phase, ServerLife, Signal, Timer, Trigger, draining_time, within_bound,
};
use super::outcome::{RunError, RunOutcome};
use super::port::{ClientPort, EofKind, Received};
use super::pump::{IoStep, Pump};
use super::reporter::Reporter;
use super::requests::Waiters;
use super::server::{RunningServer, ServerEvent, StartFuture, StartServer, Vital};
use crate::event::{EndCause, SleepReason, StartReason, What};
use crate::mcp::Failure;
use moored_registry::CrashMemory;
use moored_registry::Superseded;
use moored_registry::boot_time::{since_boot, ticks_since_boot};
use moored_registry::{ControlRequest, ControlServer};
use moored_registry::{RunInfo, RunRegistration};

/// How long a server has the machine to itself at its start: history and the sweep can wait.
const STARTUP: Duration = Duration::from_millis(150);
/// A server that lives on for so long after it has closed a pipe has not done so by exiting.
const NOT_AN_EXIT: Duration = Duration::from_millis(250);
/// How soon a server past its lifetime is looked at again that has something to read: that it has read it is told by nothing.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// What a session is made of.
pub(super) struct SessionParts<P, S> {
    pub(super) spec: ServerSpec,
    pub(super) facts: RunInfo,
    pub(super) host: SessionHost,
    pub(super) port: P,
    pub(super) starter: S,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
}

/// What the host wants of a session, besides what operators ask over its control socket.
#[derive(Debug)]
pub(super) enum Command {
    Signal(Signal),
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
    phase: Option<Instant>,
    drain: Option<Instant>,
    /// A server that was started again has taken too long to answer what it was told again.
    pub(super) replay: Option<Instant>,
    /// A client's end that is closed is not read any further.
    hangup: Option<Instant>,
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

pub(super) struct Session<P, S: StartServer> {
    pub(super) spec: ServerSpec,
    pub(super) facts: RunInfo,
    pub(super) life: ServerLife,
    pub(super) conversation: Conversation,
    pub(super) pump: Pump<P, S::Server>,
    pub(super) starter: S,
    start_under_way: Option<StartFuture<S::Server>>,
    pub(super) presence: Presence,
    pub(super) reporter: Reporter,
    log: LogSink,
    pub(super) jobs: Jobs,
    pub(super) waiters: Waiters,
    pub(super) timers: Timers,
    commands: mpsc::UnboundedReceiver<Command>,
    pub(super) crashes: Option<CrashMemory>,
    pub(super) server: ServerKnowledge,
    pub(super) end: EndSoFar,
    pub(super) began: Instant,
    /// When the client closed its end, if its tree has to be gone by a bound from then on.
    eof_at: Option<Instant>,
    /// The server's stdin is closed as soon as it has been told all.
    pub(super) is_input_over: bool,
    pub(super) sleep_reason: SleepReason,
    /// When silence was last looked at without putting the server to sleep.
    last_idle_check: Option<Instant>,
    housekeeping: Housekeeping,
    /// When our own housekeeping began, while it goes on.
    pub(super) housekeeping_since: Option<Instant>,
    pub(super) follow_ups: FollowUps,
}

impl<P: ClientPort, S: StartServer> Session<P, S> {
    pub(super) fn new(parts: SessionParts<P, S>) -> Self {
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
            timers: Timers { startup: Some(Instant::now() + STARTUP), ..Timers::default() },
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
            session.begin_tripped(found.exit_code);
        }
        orders.into_iter().for_each(|order| session.carry_out(order));
        session
    }

    /// Lives to the end.
    pub(super) async fn live(mut self) -> Result<RunOutcome, RunError> {
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
            Command::Suspend(done) => {
                self.signal_server(UnixSignal::STOP);
                // The host waits for it; it may have ended.
                let _ = done.send(());
            }
            Command::Resume => self.signal_server(UnixSignal::CONT),
        }
    }

    // === what follows ===

    /// Asks what follows, and does it.
    pub(super) fn dispatch(&mut self, trigger: Trigger) {
        let before = self.life.phase();
        let orders = self.life.handle(trigger);
        let now = self.life.phase();
        if before != now {
            self.timers.phase = None;
            self.phase_changed(before, now);
        }
        orders.into_iter().for_each(|order| self.carry_out(order));
        if before == Phase::FallingAsleep && now == Phase::Asleep {
            self.fell_asleep();
        }
    }

    fn phase_changed(&mut self, before: Phase, now: Phase) {
        if now == Phase::FallingAsleep {
            self.conversation.server_sleeps();
        } else if !self.life.has_server() {
            self.conversation.server_leaves();
        }
        if now == Phase::Tripped {
            let name = &self.spec.launch.name;
            self.conversation
                .refuse_calls(format!("`{name}` crashes again and again, and is not started for a while"));
        } else if before == Phase::Tripped {
            self.conversation.take_calls();
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::MakeRoom(why) => self.make_room(why),
            Order::LeaveQueue => self.jobs.leave_queue(),
            Order::Start(why) => self.start(why),
            Order::CloseInput => {
                self.is_input_over = true;
                self.close_input();
            }
            Order::End(from) => self.end_tree(from),
            Order::PassInterrupt => self.signal_server(UnixSignal::INT),
            Order::SetTimer(Timer::Phase, time) => self.timers.phase = Some(Instant::now() + time),
            Order::SetTimer(Timer::Drain, time) => self.timers.drain = Some(Instant::now() + time),
            Order::FailCalls => self.fail(Failed::InFlight),
            Order::FailPending => self.fail(Failed::Pending),
        }
    }

    pub(super) fn start(&mut self, why: StartReason) {
        (self.end.exit, self.end.report) = (None, None);
        self.start_under_way = Some(self.starter.start(why));
    }

    fn end_tree(&mut self, from: Rung) {
        let ladder = within_bound(self.spec.launch.ladder, from, self.eof_at.map(|at| at.elapsed()));
        if let Some(server) = &self.pump.server {
            server.running.end(ladder);
        }
    }

    /// What a terminal sends to a job goes to the server's process group.
    fn signal_server(&self, signal: UnixSignal) {
        if let Some(server) = &self.pump.server {
            server.running.signal_group(signal.as_raw());
        }
    }

    /// The server's stdin is closed when it has been told all that the client said.
    pub(super) fn close_input(&mut self) {
        let has_told_all = self.conversation.has_told_all() || !self.life.has_server();
        if let Some(server) = self.pump.server.as_mut().filter(|_| self.is_input_over && has_told_all) {
            server.close_input();
        }
    }

    /// Does what the last messages ask for.
    pub(super) fn follow_up(&mut self) {
        let next = std::mem::take(&mut self.follow_ups);
        if next == FollowUps::default() {
            return;
        }
        next.warnings.iter().for_each(|warning| self.warn(warning));
        if let Some(info) = next.initialized {
            self.initialized(info.name, info.version);
        }
        for id in next.info_wanted {
            let (folder, status) = (self.presence.folder.clone(), self.status());
            self.jobs.answer_info(id, folder, self.facts.clone(), status);
        }
        if let Some(why) = next.misfit {
            self.end_for_good(&why);
        }
        if next.wants_server {
            self.dispatch(Trigger::Message);
        }
    }

    /// Carries out what follows from something other than a message.
    pub(super) fn apply(&mut self, effects: Effects<'_>) {
        self.pump.apply(effects, &mut self.follow_ups);
    }

    /// A client that has closed its end waits for nothing any more.
    fn note_quiet(&mut self) {
        if !self.conversation.is_replaying() {
            self.timers.replay = None;
            self.close_input();
        }
        if self.life.is_draining() && self.conversation.is_quiet() {
            self.dispatch(Trigger::Quiet);
        }
    }

    pub(super) fn fail(&mut self, which: Failed) {
        let (failure, why) = match self.end.exit {
            Some(exit) => (Failure::ServerEnded, format!("the server ended ({})", in_words(exit))),
            None => (Failure::NotStarted, "the server could not be started".to_owned()),
        };
        let effects = self.conversation.fail(which, failure, &why);
        self.apply(effects);
    }

    // === the client ===

    fn io(&mut self, step: &IoStep) {
        match *step {
            IoStep::Client(Received::Eof { kind, at }) => self.client_eof(kind, at),
            IoStep::Client(Received::Gone) => self.client_gone(),
            IoStep::Client(Received::HungUp) => {
                // What it said last is still to be read, but not for ever.
                let patience = self.eof_patience(EofKind::Client, Instant::now());
                self.timers.hangup = Some(Instant::now() + patience);
            }
            IoStep::ClientDeaf => self.dispatch(Trigger::ClientGone),
            IoStep::Stderr(read) => {
                let bytes = self.pump.stderr_bytes(read).to_vec();
                self.server_stderr(&bytes);
            }
            IoStep::Client(Received::Bytes(_)) | IoStep::Stdout(_) | IoStep::Written => {}
            IoStep::StdoutClosed | IoStep::StdinClosed => self.note_half_close(),
        }
        self.pump.adjust_widths();
    }

    fn client_eof(&mut self, kind: EofKind, at: Instant) {
        self.pump.end_client();
        self.timers.hangup = None;
        // What the last messages ask for comes before their end.
        self.follow_up();
        let wanted = match kind {
            _ if !self.pump.port.can_read() => 0,
            EofKind::Pipeline if !self.pump.port.relays() => 1,
            EofKind::Client | EofKind::Pipeline => self.conversation.wanted(),
        };
        let patience = self.eof_patience(kind, at);
        self.dispatch(Trigger::Eof { wanted, patience });
    }

    fn client_gone(&mut self) {
        self.pump.end_client();
        self.follow_up();
        self.dispatch(Trigger::ClientGone);
    }

    /// How long the rest may take that follows the client's EOF, which was then unless it was noticed before.
    fn eof_patience(&mut self, kind: EofKind, at: Instant) -> Duration {
        match kind {
            EofKind::Pipeline => ONE_SHOT,
            EofKind::Client => {
                let since = self.eof_at.get_or_insert(at).elapsed();
                draining_time(&self.spec.launch.ladder).saturating_sub(since)
            }
        }
    }

    /// The server has closed its stdin or stdout. An exit closes both too, and is told by itself: so it has to live for a moment
    /// after.
    fn note_half_close(&mut self) {
        if self.life.has_server() {
            self.timers.half_close = Some(Instant::now() + NOT_AN_EXIT);
        }
    }

    /// The client sees what it would see without us: EOF on what the server wrote, a failed write of what it would read. If
    /// both are closed the two cannot talk any more, and the session is over.
    fn pass_half_close(&mut self) {
        let Some(server) = self.pump.server.as_mut().filter(|_| self.life.has_server()) else { return };
        match server.running.vital() {
            Vital::Dead => return,
            Vital::Exiting => return self.note_half_close(),
            Vital::Alive => server.is_half_closed = true,
        }
        let (has_stdin, has_stdout) = (server.running.has_stdin(), server.running.has_stdout());
        if !has_stdout {
            self.pump.finish_output(&mut self.conversation, &mut self.follow_ups);
            self.pump.port.close_output();
        }
        if !has_stdout && !has_stdin {
            self.dispatch(Trigger::Stop(EndCause::ServerExited));
        } else if !has_stdin && !self.is_input_over {
            self.pump.port.close_input();
        }
    }

    pub(super) fn server_stderr(&mut self, bytes: &[u8]) {
        (self.log)(bytes);
        self.pump.port.send_stderr(bytes);
    }

    fn initialized(&mut self, name: Option<String>, version: Option<String>) {
        if let Some(crashes) = &self.crashes {
            crashes.forget();
        }
        self.server.initialized_ticks = Some(ticks_since_boot());
        if self.spec.rules.server_version.is_none() {
            self.server.version = version;
        }
        if let Some(file) = self.pump.server.as_ref().and_then(|server| server.pid_file.as_ref()) {
            file.update(self.server.version.as_deref());
        }
        self.reporter
            .note(What::Initialized { server_name: name, server_version: self.server.version.clone() });
    }

    /// A server that cannot take its predecessor's place is no server.
    fn end_for_good(&mut self, why: &str) {
        self.warn(&format!("the server that was started again cannot take its predecessor's place: {why}"));
        self.conversation.give_up_replay();
        self.end.exit_code = Some(125);
        self.fail(Failed::InFlight);
        self.fail(Failed::Pending);
        self.dispatch(Trigger::Stop(EndCause::StartFailed));
    }

    // === the clock ===

    fn deadline(&self) -> Option<Instant> {
        let Timers { startup, phase, drain, replay, hangup, half_close } = self.timers;
        let (idle, lifetime) = (self.idle_deadline(), self.lifetime_deadline());
        [startup, phase, drain, replay, hangup, half_close, idle, lifetime].into_iter().flatten().min()
    }

    fn time(&mut self) {
        let now = Instant::now();
        let is_due = |timer: &mut Option<Instant>| timer.take_if(|at| *at <= now).is_some();
        if is_due(&mut self.timers.startup) {
            self.startup_over();
        } else if is_due(&mut self.timers.replay) {
            self.end_for_good("it does not answer what its predecessor had been asked");
        } else if is_due(&mut self.timers.hangup) {
            self.pump.end_client();
            self.dispatch(Trigger::Eof { wanted: 0, patience: Duration::ZERO });
        } else if is_due(&mut self.timers.half_close) {
            self.pass_half_close();
        } else if is_due(&mut self.timers.drain) {
            self.dispatch(Trigger::Fired(Timer::Drain));
        } else if is_due(&mut self.timers.phase) {
            self.dispatch(Trigger::Fired(Timer::Phase));
        } else {
            self.consider_sleep(now);
        }
    }

    /// The server has started: now there is time for the rest.
    pub(super) fn startup_over(&mut self) {
        self.timers.startup = None;
        if !self.reporter.flush_startup_events() {
            return;
        }
        match self.housekeeping {
            Housekeeping::BySession => {
                self.housekeeping_since = Some(Instant::now());
                self.jobs.run_housekeeping(&self.spec);
            }
            Housekeeping::ByHost => self.jobs.look_at_code(&self.spec),
        }
    }

    pub(super) fn idle_facts(&self) -> IdleFacts<'_> {
        let server = self.pump.server.as_ref();
        IdleFacts {
            rules: &self.spec.rules,
            phase: self.life.phase(),
            conversation: &self.conversation,
            silent: self.pump.last_activity.unwrap_or(self.began).elapsed(),
            lived: server.map(|server| server.since.elapsed()),
            unread: server.map_or(0, |server| server.unread()),
            pipes: self.pipes(),
            now: since_boot(),
        }
    }

    fn pipes(&self) -> Pipes {
        let is_half_closed = self.pump.server.as_ref().is_some_and(|server| server.is_half_closed);
        if !self.pump.port.relays() {
            Pipes::Direct
        } else if is_half_closed || self.timers.half_close.is_some() {
            Pipes::HalfClosed
        } else {
            Pipes::Relayed
        }
    }

    fn idle_deadline(&self) -> Option<Instant> {
        let silence = self.idle_facts().silence()?;
        let since = self.pump.last_activity.max(self.last_idle_check).unwrap_or(self.began);
        Some(since + silence)
    }

    fn lifetime_deadline(&self) -> Option<Instant> {
        let lifetime = self.spec.rules.max_lifetime?;
        let facts = self.idle_facts();
        let due = self.pump.server.as_ref()?.since + lifetime;
        if due <= Instant::now() && facts.unread > 0 {
            return self.last_idle_check.map(|at| at + READ_AGAIN);
        }
        // Due already, and busy then: looked at again when something has passed.
        let is_worth_waiting = due > Instant::now() || facts.refusal().is_none();
        (facts.may_think_of_sleep() && is_worth_waiting).then_some(due)
    }

    fn consider_sleep(&mut self, now: Instant) {
        self.last_idle_check = Some(now);
        let facts = self.idle_facts();
        let has_unread = facts.unread > 0;
        match facts.decide() {
            // It is silent from when it has read all on.
            IdleDecision::Stay if has_unread => self.pump.last_activity = Some(now),
            IdleDecision::Stay => {}
            IdleDecision::Sleep(why) => self.sleep(why),
            IdleDecision::SleepIfSuperseded => self.look_for_successor(),
        }
    }

    fn look_for_successor(&mut self) {
        let (Some(folder), Some(server)) = (self.presence.folder.clone(), &self.pump.server) else { return };
        let tree = ServerTree {
            server: server.running.started().process,
            guardians: server.running.guardians().to_vec(),
            initialized_ticks: self.server.initialized_ticks.unwrap_or(0),
        };
        let silence = self.idle_facts().silence().unwrap_or_default();
        self.jobs.look_for_successor(folder, self.facts.clone(), silence, tree);
    }

    /// Something may have happened while it was looked up.
    fn superseded(&mut self, newer: Option<Superseded>, started: StartedProcesses) {
        self.server.superseded_by = newer;
        let facts = self.idle_facts();
        let holds_something = facts.conversation.has_state(facts.now) || started == StartedProcesses::Some;
        let may_go = facts.is_given_up() || !holds_something;
        if newer.is_some() && may_go && facts.decide() == IdleDecision::SleepIfSuperseded {
            self.sleep(SleepReason::Superseded);
        }
    }

    pub(super) fn sleep(&mut self, why: SleepReason) {
        self.sleep_reason = why;
        self.dispatch(Trigger::Hibernate);
    }

    // === what comes back from threads ===

    pub(super) fn job(&mut self, result: BackgroundResult) {
        match result {
            BackgroundResult::Code(code) => self.server.code = code,
            BackgroundResult::Swept(swept) => {
                let (ended, survivors) = (swept.ended.len() as u64, swept.survivors.len() as u64);
                if ended + survivors > 0 {
                    self.reporter.note(What::Swept { session: swept.session, ended, survivors });
                }
            }
            BackgroundResult::Died(facts) => self.reporter.note_death(&facts),
            BackgroundResult::Problem(problem) => self.warn(&problem),
            BackgroundResult::Answer(id, line) => {
                let effects = self.conversation.answer(&id, line);
                self.apply(effects);
            }
            BackgroundResult::FirstRoom(room) => self.first_room(room),
            BackgroundResult::WakeRoom(woken) => self.wake_room(woken),
            BackgroundResult::Superseded(newer, started) => self.superseded(newer, started),
            BackgroundResult::HousekeepingDone => self.housekeeping_since = None,
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

fn in_words(exit: ServerExit) -> String {
    match exit {
        ServerExit::Code(code) => format!("exit code {code}"),
        ServerExit::Signal(signal) => format!("signal {signal}"),
    }
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
